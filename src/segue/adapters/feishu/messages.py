"""Messages of Feishu's, as events tell them and as they are fetched: their fields, their words, and their files.

Nothing is trusted to have the right shape. The content is JSON in a text, in a form for each kind of message.
"""

import html
import mimetypes
import re
from collections.abc import Iterator, Mapping
from typing import Any

from segue.adapters.shared import decoding
from segue.adapters.shared.decoding import text_in
from segue.adapters.shared.webhooks import from_json
from segue.core.messages import File
from segue.core.values import Moment, Plain, Value
from segue.errors import Invalid

Json = dict[str, Any]
Content = tuple[str, Mapping[str, File]]
"""What a message says, and its files by the keys that lead to them."""
_PLACEHOLDER = re.compile(r"@_user_\d+|@_all")
_BREAK = re.compile(r"<br */?>")
_STYLES = {"bold": "**", "italic": "*", "lineThrough": "~~"}
_NAMES = {"audio": "voice.opus", "media": "video.mp4"}
"""The names of files that have none."""
PICTURE = File("picture.png", "image/png", "")
"""A picture that isn't fetched yet: Feishu doesn't say what it is called."""


class Message(Value, frozen=True):
    """A message; the kind and the content of one that was fetched have other names."""

    message_id: str
    chat_id: str = ""
    chat_type: str = ""
    message_type: str = ""
    msg_type: str = ""
    content: str = ""
    body: Mapping[str, Plain] = {}
    sender: Mapping[str, Plain] = {}
    create_time: str | int = 0
    update_time: str | int = 0
    updated: bool = False
    deleted: bool = False
    root_id: str = ""
    parent_id: str = ""
    thread_id: str = ""
    upper_message_id: str = ""
    """The message that passes it on."""
    mentions: tuple[Mapping[str, Plain], ...] = ()

    @property
    def author(self) -> str:
        return text_in(self.sender, "id") or text_in(self.sender, "sender_id", "open_id")

    @property
    def mentioned(self) -> list[tuple[str, str, str]]:
        """Who is mentioned: the words that stand for them in a text, their id and their name."""
        ids = (text_in(one, "id") or text_in(one, "id", "open_id") for one in self.mentions)
        return [(text_in(one, "key"), id, text_in(one, "name")) for one, id in zip(self.mentions, ids, strict=True)]

    @property
    def kind(self) -> str:
        return self.message_type or self.msg_type

    @property
    def said(self) -> Any:
        return from_json(self.content or text_in(self.body, "content"))

    @property
    def at(self) -> Moment:
        return moment(self.create_time)

    @property
    def thread(self) -> str:
        """The root of the thread that it is in; the message itself, if it is that."""
        return (self.root_id or self.message_id) if self.thread_id else ""

    @property
    def quotes(self) -> str:
        """The message that it answers; in a thread, whatever is said answers the root."""
        return "" if self.thread_id and self.parent_id == self.root_id else self.parent_id


def decode(raw: object) -> Message:
    """A message, from what JSON held; raises `Invalid`."""
    return decoding.decode(raw, Message, "Feishu")


def moment(raw: object) -> Moment:
    """A time in milliseconds; the beginning of all time, if it is none."""
    try:
        return int(str(raw)) / 1000
    except (ValueError, OverflowError):
        return 0.0


def read(message: Message, names: Mapping[str, str]) -> Content:
    """The content of a message; `names` are those of whoever is mentioned, by what stands for them."""
    match message.kind, message.said:
        case "text", {"text": str(text)}:
            return _named(_unwrapped(text) if message.updated else text, names), {}
        case "post", {"content": list(lines), **more}:
            parts = [[part for part in line if isinstance(part, dict)] for line in lines if isinstance(line, list)]
            text = "\n".join("".join(_words(part, names) for part in line) for line in parts)
            files = {key: file for line in parts for part in line for key, file in _files(part).items()}
            return f"{more.get('title') or ''}\n{text}".strip(), files
        case ("image" | "file" | "audio" | "media") as kind, dict(said) if files := _files({"tag": kind, **said}):
            return "", files
        case kind, _:
            raise Invalid(kind or "message_type", "messages of this kind aren't understood", "Write it in words.")


def text_of(message: Message) -> str:
    """The words of any message, as far as it has some: of what was quoted, forwarded or sent."""
    try:
        return read(message, {})[0]
    except Invalid:
        # A card, or something of which only the words can be told.
        return "\n".join(_strings(message.said))


def _strings(said: object) -> Iterator[str]:
    """All words in the JSON of a message or a card, whatever its form."""
    pairs = said.items() if isinstance(said, dict) else enumerate(said) if isinstance(said, list) else ()
    for key, value in pairs:
        if isinstance(value, str) and key in {"text", "content", "title"}:
            yield value
        else:
            yield from _strings(value)


def _words(part: Mapping[str, Any], names: Mapping[str, str]) -> str:
    match part:
        case {"tag": "a", "text": str(text), "href": str(url)} if text != url:
            return f"[{text}]({url})"
        case {"tag": "at", "user_id": str(key), **more}:
            return f"@{names.get(key) or more.get('user_name') or key}"
        case {"tag": "code_block", "text": str(text), **more}:
            return f"```{str(more.get('language') or '').lower()}\n{text.rstrip()}\n```"
        case {"tag": "emotion", "emoji_type": str(name)}:
            return f":{name}:"
        case {"tag": "hr"}:
            return "---"
        case _:
            text, styles = str(part.get("text") or ""), part.get("style")
            marks = [mark for style, mark in _STYLES.items() if isinstance(styles, list) and style in styles]
            return f"{''.join(marks)}{_named(text, names)}{''.join(reversed(marks))}"


def _files(part: Mapping[str, Any]) -> dict[str, File]:
    match part:
        case {"tag": str(tag), "file_key": str(key), **more}:
            name = str(more.get("file_name") or _NAMES.get(tag, "file"))
            return {key: File(name, mimetypes.guess_type(name)[0] or "", "")}
        case {"image_key": str(key)}:
            return {key: PICTURE}
        case _:
            return {}


def _named(text: str, names: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: f"@{names[found[0]]}" if found[0] in names else found[0], text)


def _unwrapped(text: str) -> str:
    """A text that was edited, of which Feishu tells the paragraphs as HTML."""
    *paragraphs, rest = (part.lstrip() for part in text.split("</p>"))
    if rest or not all(part.startswith("<p>") for part in paragraphs):
        return text
    lines = "\n".join(part.removeprefix("<p>") for part in paragraphs)
    return html.unescape(_BREAK.sub("\n", lines))
