"""Events of the homeserver, decoded: nothing in them is trusted to have the right shape."""

import re
from typing import Any
from urllib.parse import unquote

import msgspec

from segue.adapters.shared.decoding import inside, listed, text_in
from segue.core.messages import File, Part, Text
from segue.core.values import converted

_QUOTED = re.compile(r"\A> <[^\n]*\n(?:>[^\n]*+\n)*+\n")
"""How older clients repeat what they answer."""
_FILES = frozenset({"m.image", "m.file", "m.audio", "m.video"})
SEALED = "m.room.encrypted"
AUTOMATED = "org.matrix.msc3955.automated"
"""Marks what a program wrote, so that no two programs answer each other for ever."""


class Relation(msgspec.Struct, frozen=True):
    rel_type: str = ""
    event_id: str = ""
    in_reply_to: dict[str, Any] | None = msgspec.field(name="m.in_reply_to", default=None)


class Mentioned(msgspec.Struct, frozen=True):
    user_ids: tuple[str, ...] = ()


class Content(msgspec.Struct, frozen=True):
    msgtype: str
    body: str
    formatted_body: str | None = None
    filename: str | None = None
    url: str | None = None
    file: dict[str, Any] | None = None
    """An encrypted file: where it is, and what opens it."""
    info: dict[str, Any] | None = None
    relates_to: Relation | None = msgspec.field(name="m.relates_to", default=None)
    mentions: Mentioned | None = msgspec.field(name="m.mentions", default=None)
    new_content: dict[str, Any] | None = msgspec.field(name="m.new_content", default=None)
    automated: bool | None = msgspec.field(name=AUTOMATED, default=None)

    @property
    def text(self) -> str:
        body = _QUOTED.sub("", self.body) if self.relates_to and self.relates_to.in_reply_to else self.body
        return f"*{body}*" if self.msgtype == "m.emote" else body

    @property
    def parts(self) -> tuple[Part, ...]:
        """It as the gateway keeps it; a file that it names isn't fetched yet."""
        where = self.url or (self.file or {}).get("url")
        if self.msgtype not in _FILES or not isinstance(where, str):
            return (Text(self.text),)
        name, size = self.filename or self.body, (self.info or {}).get("size")
        media = text_in(self.info, "mimetype") or "application/octet-stream"
        file = File(name, media, where, size if isinstance(size, int) else 0)
        return (file,) if name == self.body else (Text(self.text), file)

    def mentions_user(self, user: str, name: str) -> bool:
        """Whether somebody is meant, by the list that newer clients give, else by a link, the id or the name."""
        if self.mentions is not None:
            return user in self.mentions.user_ids
        linked = f"https://matrix.to/#/{user}" in unquote(self.formatted_body or "")
        named = name and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self.body, re.IGNORECASE)
        return linked or user in self.body or bool(named)


class Told(msgspec.Struct, frozen=True):
    """An event as somebody is told who isn't in the room; another homeserver may have written it."""

    type: str
    sender: str
    content: dict[str, Any]
    state_key: str | None = None


class Event(Told, frozen=True, kw_only=True):
    event_id: str
    origin_server_ts: int = 0
    unsigned: dict[str, Any] = {}
    redacts: str = ""
    """The event that it takes back; newer rooms name it in the content."""

    @property
    def is_empty(self) -> bool:
        """Whether somebody took back what it said."""
        return not self.content and "redacted_because" in self.unsigned

    @property
    def words(self) -> str:
        try:
            return converted(self.content, Content).text
        except msgspec.ValidationError:
            return ""

    def related(self, how: str) -> str:
        """The event to which it stands in this way, such as "m.thread"; empty if there is none."""
        relation = inside(self.content, "m.relates_to")
        return text_in(relation, "event_id") if relation.get("rel_type") == how else ""

    @property
    def quotes(self) -> str:
        """The event that it answers, which some name only for clients that don't know threads."""
        relation = inside(self.content, "m.relates_to")
        return "" if relation.get("is_falling_back") is True else text_in(relation, "m.in_reply_to", "event_id")


class Opened(Event, frozen=True):
    """An event that came encrypted."""


def became(raw: object, user: str) -> tuple[str, str]:
    """What an event made of somebody in its room, such as "invite" or "join", and what they were before."""
    if (text_in(raw, "type"), text_in(raw, "state_key")) != ("m.room.member", user):
        return "", ""
    return text_in(raw, "content", "membership"), text_in(raw, "unsigned", "prev_content", "membership")


def events_in(raw: object, *path: str) -> list[Any]:
    return listed(inside(raw, *path).get("events"))
