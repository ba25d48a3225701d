"""Contents of events that go out: a text in both forms that clients show."""

import json
import re
from urllib.parse import quote, unquote

from segue.adapters.matrix.events import AUTOMATED
from segue.adapters.matrix.homeserver import Json
from segue.adapters.shared.markup import HTML, html_text, written
from segue.core.messages import File
from segue.core.text.markdown import READABLE, parse
from segue.core.text.splitting import MessageRoom

_LARGEST = 44 * 1024
"""Bytes of a content: an event holds 64 KiB, encryption takes a third more, and the homeserver adds its own."""
_SHORT = 100
_SHOWN = frozenset({"image", "audio", "video"})
_LINK = "https://matrix.to/#/"
_LINKED = re.compile(re.escape(f"]({_LINK}") + r"((?:@|%40)[^\s()]+)\)")
_PLAIN = frozenset({"root", "paragraph", "inline", "text", "softbreak"})


def mention(user: str) -> str:
    """A mention of somebody: a link to them, which clients show as their name."""
    return f"[{user}]({_LINK}{quote(user, safe='@:')})"


def message(text: str, thread: str = "", answers: str = "") -> Json:
    """A new message: in a thread, or as the answer to another message, or neither."""
    if not thread and answers:
        return _shown(text) | {"m.relates_to": {"m.in_reply_to": {"event_id": answers}}}
    return _shown(text) | _inside(thread)


def attached(file: File, where: str | Json, thread: str = "", text: str = "") -> Json:
    """A file that is in the media store, with what opens it if it is encrypted, and the text beneath it, if any."""
    kind = file.media.partition("/")[0]
    link = {"url": where} if isinstance(where, str) else {"file": where}
    shown = {"msgtype": f"m.{kind if kind in _SHOWN else 'file'}", **link, "filename": file.name}
    about = {"info": {"mimetype": file.media, "size": file.size}}
    return _marked(text or file.name) | shown | about | _inside(thread)


def edited(event: str, text: str) -> Json:
    """A message that replaces another; clients that don't know edits show its beginning."""
    return {
        # Nobody is called again and again while a text grows.
        **_marked(f"* {text if len(text) <= _SHORT else f'{text[:_SHORT]}…'}"),
        "m.new_content": _shown(text),
        "m.relates_to": {"rel_type": "m.replace", "event_id": event},
    }


def _inside(thread: str) -> Json:
    if not thread:
        return {}
    fallback = {"is_falling_back": True, "m.in_reply_to": {"event_id": thread}}
    return {"m.relates_to": {"rel_type": "m.thread", "event_id": thread, **fallback}}


def _marked(text: str, *mentioned: str) -> Json:
    # An empty list of mentions is a list: nobody is called, whatever names the text has in it.
    mentions = {"user_ids": list(mentioned)} if mentioned else {}
    return {"msgtype": "m.text", "body": text, "m.mentions": mentions, AUTOMATED: True}


def _shown(text: str) -> Json:
    rich = _rich(text)
    plain = {name: rich[name] for name in rich.keys() - {"format", "formatted_body"}}
    return rich if _size(rich) <= _LARGEST else plain


def _rich(text: str) -> Json:
    plain, tree = _marked(text, *dict.fromkeys(map(unquote, _LINKED.findall(text)))), parse(text)
    if all(node.type in _PLAIN for node in tree.walk()):
        return plain
    return plain | {"format": "org.matrix.custom.html", "formatted_body": written(tree, HTML, html_text)}


def _size(content: Json) -> int:
    return len(json.dumps(content, ensure_ascii=False).encode())


fits = MessageRoom(
    _LARGEST,
    most=lambda text: 4 * len(text.encode()),
    size=lambda text: _size(_rich(text)),
    readable=READABLE,
)
"""The room of one event with all its marks. A text of a quarter of that goes out at worst without them."""
