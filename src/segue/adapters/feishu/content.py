"""The content of a message: its words, and the files in it. Feishu keeps it as JSON, in a form for each kind."""

import html
import json
import mimetypes
import re
from collections.abc import Iterator, Mapping
from typing import Any

from segue.core.messages import File
from segue.core.values import Value
from segue.errors import Invalid

_PLACEHOLDER = re.compile(r"@_user_\d+|@_all")
_BREAK = re.compile(r"<br */?>")
_STYLES = {"bold": "**", "italic": "*", "lineThrough": "~~"}


class Attachment(Value, frozen=True):
    """A file of a message."""

    key: str
    name: str
    kind: str = "file"
    """The kind of resource that Feishu has it as."""

    @property
    def named(self) -> File:
        """The file as long as it isn't fetched."""
        return File(self.name, mimetypes.guess_type(self.name)[0] or "", "")


class Content(Value, frozen=True):
    """What a message says."""

    text: str = ""
    files: tuple[Attachment, ...] = ()


def read(kind: str, raw: str, names: Mapping[str, str]) -> Content:
    """The content of a message of a kind; `names` are those of whoever is mentioned, by what stands for them."""
    said = _object(raw)
    match kind:
        case "text":
            return Content(_named(_text(said, "text"), names))
        case "post":
            lines = _lines(said)
            text = "\n".join("".join(_words(part, names) for part in line) for line in lines)
            files = tuple(file for line in lines for part in line for file in _files(part))
            return Content(f"{_text(said, 'title')}\n{text}".strip(), files)
        case "image":
            return Content(files=(Attachment(_text(said, "image_key"), "picture.png", "image"),))
        case "file" | "audio" | "media":
            usual = {"audio": "voice.opus", "media": "video.mp4"}.get(kind, "file")
            return Content(files=(Attachment(_text(said, "file_key"), _text(said, "file_name") or usual),))
        case _:
            raise Invalid(kind or "message_type", "messages of this kind aren't understood", "Write it in words.")


def unwrapped(raw: dict[str, Any]) -> dict[str, Any]:
    """A message that was fetched; of a text that was edited, Feishu tells the paragraphs as HTML."""
    body = raw.get("body")
    if not raw.get("updated") or raw.get("msg_type") != "text" or not isinstance(body, dict):
        return raw
    text = text_of("text", str(body.get("content")))
    *paragraphs, rest = (part.lstrip() for part in text.split("</p>"))
    if rest or not paragraphs or not all(part.startswith("<p>") for part in paragraphs):
        return raw
    lines = "\n".join(part.removeprefix("<p>") for part in paragraphs)
    return {**raw, "body": {**body, "content": json.dumps({"text": html.unescape(_BREAK.sub("\n", lines))})}}


def text_of(kind: str, raw: str) -> str:
    """The words of any message, as far as it has some: of what was quoted, forwarded or sent."""
    try:
        return read(kind, raw, {}).text
    except Invalid:
        """A card, or something of which only the words can be told."""
    try:
        return "\n".join(strings(json.loads(raw)))
    except (ValueError, RecursionError):
        return ""


def strings(said: object) -> Iterator[str]:
    """All words in the JSON of a message or a card, whatever its form."""
    if isinstance(said, list):
        for one in said:
            yield from strings(one)
    elif isinstance(said, dict):
        for key, value in said.items():
            if isinstance(value, str) and key in {"text", "content", "title"}:
                yield value
            else:
                yield from strings(value)


def _object(raw: str) -> dict[str, Any]:
    try:
        said = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Invalid("content", "it is no JSON", "Feishu's documentation says what it looks like.") from error
    if not isinstance(said, dict):
        raise Invalid("content", "it is no object", "Feishu's documentation says what it looks like.")
    return said


def _text(said: Mapping[str, Any], key: str) -> str:
    value = said.get(key)
    return value if isinstance(value, str) else ""


def _named(text: str, names: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: f"@{names[found[0]]}" if found[0] in names else found[0], text)


def _lines(said: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    lines = said.get("content")
    found = lines if isinstance(lines, list) else []
    return [[part for part in line if isinstance(part, dict)] for line in found if isinstance(line, list)]


def _words(part: Mapping[str, Any], names: Mapping[str, str]) -> str:
    text = _text(part, "text")
    match part.get("tag"):
        case "a":
            return f"[{text}]({_text(part, 'href')})" if text != _text(part, "href") else text
        case "at":
            key = _text(part, "user_id")
            return f"@{names.get(key) or _text(part, 'user_name') or key}"
        case "code_block":
            return f"```{_text(part, 'language').lower()}\n{text.rstrip()}\n```"
        case "emotion":
            return f":{_text(part, 'emoji_type')}:"
        case "hr":
            return "---"
        case _:
            styles = part.get("style")
            marks = [_STYLES[one] for one in styles if one in _STYLES] if isinstance(styles, list) else []
            return f"{''.join(marks)}{_named(text, names)}{''.join(reversed(marks))}"


def _files(part: Mapping[str, Any]) -> Iterator[Attachment]:
    if part.get("tag") == "img" and (key := _text(part, "image_key")):
        yield Attachment(key, "picture.png", "image")
    elif part.get("tag") == "media" and (key := _text(part, "file_key")):
        yield Attachment(key, "video.mp4")
