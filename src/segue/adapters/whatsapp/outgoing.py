"""Messages to WhatsApp by the Cloud API: one for each answer, whatever its length."""

import re
from collections.abc import Sequence

from segue.adapters.shared.attachments import content_of
from segue.adapters.shared.markup import utf16
from segue.adapters.shared.rates import Bucket, Rate
from segue.adapters.whatsapp.graph import Graph, Json
from segue.adapters.whatsapp.markup import LONGEST, render
from segue.core.contracts.adapters import Files
from segue.core.messages import Delivery
from segue.core.questions import label
from segue.core.values import Value

_USER = re.compile(r"[A-Z]{2}\.[A-Za-z0-9]{1,128}")
"""A user id, which WhatsApp gives a person for one business."""
_BUTTONS, _LONGEST_TITLE, _WITH_BUTTONS = 3, 20, 1024
_ROWS, _LONGEST_ROW, _LONGEST_DESCRIPTION = 10, 24, 72
_CAPTION, _BEGINNING = 1024, 600
WHOLE = "The whole answer is in the file."
_KINDS = {
    "image": ({"image/jpeg", "image/png"}, 5 * 1024 * 1024),
    "video": ({"video/mp4", "video/3gpp"}, 16 * 1024 * 1024),
    "audio": ({"audio/aac", "audio/amr", "audio/mp4", "audio/mpeg", "audio/ogg"}, 16 * 1024 * 1024),
}
"""Kinds of messages that show a file, with the types and the bytes that they take; all else is a document."""


class Pace(Value, frozen=True):
    """The rates that WhatsApp allows a number."""

    overall: Rate = Rate(80, 1.0)
    chat: Bucket = Bucket(45, 6.0)
    """To one person."""


async def message(delivery: Delivery, graph: Graph, files: Files) -> Json:
    """The message that a delivery is; the file in it is with WhatsApp already."""
    text = render(delivery.text)
    if delivery.file is not None:
        content = await content_of(files, delivery.file)
        return await _file(graph, delivery.file.name, delivery.file.media, content, text)
    if delivery.choices:
        if (asked := interactive(text, delivery.choices)) is not None:
            return {"type": "interactive", "interactive": asked}
        text = render(delivery.without_buttons.text)
    if utf16(text) <= LONGEST:
        return {"type": "text", "text": {"body": text, "preview_url": False}}
    beginning = f"{render(delivery.text[:_BEGINNING])}…\n\n{WHOLE}"
    return await _file(graph, "answer.txt", "text/plain", delivery.text.encode(), beginning)


async def _file(graph: Graph, name: str, media: str, content: bytes, caption: str) -> Json:
    """A message that shows a file; WhatsApp takes texts of every kind as plain ones only."""
    media = "text/plain" if media.startswith("text/") or media == "application/json" else media
    kinds = (kind for kind, (types, most) in _KINDS.items() if media in types and len(content) <= most)
    kind = next(kinds, "document")
    kind = "document" if kind == "audio" and caption else kind
    shown: Json = {"id": await graph.upload(name, media or "application/octet-stream", content)}
    shown |= {"caption": caption[:_CAPTION]} if caption else {}
    shown |= {"filename": name} if kind == "document" else {}
    return {"type": kind, kind: shown}


def interactive(text: str, choices: Sequence[str]) -> Json | None:
    """A question with three buttons at most, or with a list; None if WhatsApp shows it as neither."""
    titles = {choice: label(choice) for choice in choices}
    longest = max(map(len, titles.values()))
    if not all(titles.values()):
        return None
    if len(choices) <= _BUTTONS and utf16(text) <= _WITH_BUTTONS and longest <= _LONGEST_TITLE:
        buttons = [{"type": "reply", "reply": {"id": id, "title": title}} for id, title in titles.items()]
        return {"type": "button", "body": {"text": text}, "action": {"buttons": buttons}}
    if len(choices) <= _ROWS and utf16(text) <= LONGEST and longest <= _LONGEST_DESCRIPTION:
        rows = [_row(id, title) for id, title in titles.items()]
        return {"type": "list", "body": {"text": text}, "action": {"button": "Choose", "sections": [{"rows": rows}]}}
    return None


def _row(choice: str, title: str) -> Json:
    if len(title) <= _LONGEST_ROW:
        return {"id": choice, "title": title}
    return {"id": choice, "title": f"{title[: _LONGEST_ROW - 1]}…", "description": title}


def recipient(ids: Sequence[str]) -> Json:
    """Whom a message is for: a person by the newest user id or else number that they have, or a group."""
    users = [id for id in ids if _USER.fullmatch(id)]
    if users:
        return {"recipient_type": "individual", "recipient": users[-1]}
    numbers = [id for id in ids if id.isascii() and id.isdecimal()]
    return {"recipient_type": "individual" if numbers else "group", "to": (numbers or ids)[-1]}
