"""Events of the homeserver, decoded: nothing in them is trusted to have the right shape."""

import logging
import re
from typing import Any, TypeVar
from urllib.parse import unquote

import msgspec

from segue.adapters.shared.decoding import inside, listed
from segue.core.messages import File, Part, Text
from segue.core.values import converted

T = TypeVar("T")
log = logging.getLogger(__name__)

_QUOTED = re.compile(r"\A> <[^\n]*\n(?:>[^\n]*+\n)*+\n")
"""How older clients repeat what they answer."""
_UNKNOWN = "application/octet-stream"
_FILES = frozenset({"m.image", "m.file", "m.audio", "m.video"})
SEALED = "m.room.encrypted"
AUTOMATED = "org.matrix.msc3955.automated"
"""Marks what a program wrote, so that no two programs answer each other for ever."""


class InReplyTo(msgspec.Struct, frozen=True):
    event_id: str


class Relation(msgspec.Struct, frozen=True):
    """How an event stands to another one."""

    rel_type: str = ""
    event_id: str = ""
    in_reply_to: InReplyTo | None = msgspec.field(name="m.in_reply_to", default=None)
    is_falling_back: bool = False
    """The message that it seems to answer is named only for clients that don't know threads."""

    @property
    def thread(self) -> str:
        return self.event_id if self.rel_type == "m.thread" else ""

    @property
    def replaces(self) -> str:
        return self.event_id if self.rel_type == "m.replace" else ""

    @property
    def quotes(self) -> str:
        return self.in_reply_to.event_id if self.in_reply_to and not self.is_falling_back else ""


class Mentioned(msgspec.Struct, frozen=True):
    user_ids: tuple[str, ...] = ()


class About(msgspec.Struct, frozen=True):
    mimetype: str | None = None
    size: int | None = None


class Content(msgspec.Struct, frozen=True):
    """A message."""

    msgtype: str
    body: str
    formatted_body: str | None = None
    filename: str | None = None
    url: str | None = None
    file: dict[str, Any] | None = None
    """An encrypted file: where it is, and what opens it."""
    info: About | None = None
    relates_to: Relation | None = msgspec.field(name="m.relates_to", default=None)
    mentions: Mentioned | None = msgspec.field(name="m.mentions", default=None)
    new_content: dict[str, Any] | None = msgspec.field(name="m.new_content", default=None)
    automated: bool | None = msgspec.field(name=AUTOMATED, default=None)

    @property
    def by_a_bot(self) -> bool:
        return self.msgtype == "m.notice" or self.automated is True

    @property
    def text(self) -> str:
        """The words that the person typed."""
        body = _QUOTED.sub("", self.body) if self.relates_to and self.relates_to.in_reply_to else self.body
        return f"*{body}*" if self.msgtype == "m.emote" else body

    @property
    def parts(self) -> tuple[Part, ...]:
        """It as the gateway keeps it; a file that it names isn't fetched yet."""
        where = self.url or (self.file or {}).get("url")
        if self.msgtype not in _FILES or not isinstance(where, str):
            return (Text(self.text),)
        name = self.filename or self.body
        about = self.info or About()
        file = File(name, about.mimetype or _UNKNOWN, where, about.size or 0)
        return (file,) if name == self.body else (Text(self.text), file)

    def mentions_user(self, user: str, name: str) -> bool:
        """Whether somebody is meant, by the list that newer clients give, else by a link, the id or the name."""
        if self.mentions is not None:
            return user in self.mentions.user_ids
        if user in self.body or f"https://matrix.to/#/{user}" in unquote(self.formatted_body or ""):
            return True
        return bool(name) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self.body, re.IGNORECASE) is not None


class Event(msgspec.Struct, frozen=True):
    """Something that happened in a room."""

    event_id: str
    type: str
    sender: str
    content: dict[str, Any]
    origin_server_ts: int = 0
    state_key: str | None = None
    unsigned: dict[str, Any] = {}
    redacts: str = ""

    @property
    def redacted(self) -> str:
        """The event that it takes back; newer rooms name it in the content."""
        named = self.content.get("redacts")
        return self.redacts or (named if isinstance(named, str) else "")

    @property
    def is_empty(self) -> bool:
        """Whether somebody took back what it said."""
        return not self.content and "redacted_because" in self.unsigned

    def message(self) -> Content:
        """Its content as a message; raises `msgspec.ValidationError`."""
        return converted(self.content, Content)

    @property
    def words(self) -> str:
        """The words in it; none if it has none, or was taken back."""
        try:
            return self.message().text
        except msgspec.ValidationError:
            return ""

    @property
    def relation(self) -> Relation:
        """How it stands to another; none if that can't be read."""
        try:
            return converted(self.content.get("m.relates_to") or {}, Relation)
        except msgspec.ValidationError:
            return Relation()


class Opened(Event, frozen=True):
    """An event that came encrypted."""


def became(raw: object, user: str) -> tuple[str, str]:
    """What an event made of somebody in its room, such as "invite" or "join", and what they were before."""
    event = inside(raw)
    if event.get("type") != "m.room.member" or event.get("state_key") != user:
        return "", ""
    now, was = inside(event, "content"), inside(event, "unsigned", "prev_content")
    return str(now.get("membership", "")), str(was.get("membership", ""))


def events_in(raw: object, *path: str) -> list[Any]:
    return listed(inside(raw, *path).get("events"))
