"""What signal-cli tells of each message, decoded: the fields that are read, and nothing is trusted to be there.

Law: a person is a UUID or a number, perhaps both; a message is the time at which its author sent it. Neither is enough
alone, so a message is named by both.
"""

from typing import Any

import msgspec

from segue.core.messages import File
from segue.core.values import Live, Value, converted
from segue.errors import Invalid

Known = str | None
"""A text that signal-cli leaves out, or says is nothing."""


def named(at: int, author: str) -> str:
    """The id of a message; one that the account itself sent, from whichever device, goes by its time alone."""
    return f"{at}.{author}" if author else str(at)


class Ids(Value, frozen=True):
    """The ids of one person: the UUID, which stays, and the number, which may be hidden or become another's."""

    uuid: str
    number: str

    @property
    def first(self) -> str:
        """The one to know them by."""
        return self.uuid or self.number

    @property
    def others(self) -> tuple[str, ...]:
        """The other one, if there are two."""
        return (self.number,) if self.uuid and self.number else ()

    @property
    def sole(self) -> str:
        """The one that is never given to anybody else; a UUID that stands for a number may be."""
        return "" if self.uuid.startswith("PNI:") else self.uuid

    @property
    def all(self) -> tuple[str, ...]:
        """Both, as far as they are known."""
        return tuple(filter(None, (self.uuid, self.number)))


class Mentioned(Value, frozen=True):
    """Somebody who is named in a text: a stretch of it, in UTF-16, stands for them."""

    start: int
    length: int
    uuid: Known = None
    number: Known = None

    @property
    def ids(self) -> Ids:
        return Ids(self.uuid or "", self.number or "")


class Quoted(Value, frozen=True, rename="camel"):
    """The message that is answered."""

    id: int
    author_uuid: Known = None
    author_number: Known = None
    text: Known = None
    mentions: tuple[Mentioned, ...] = ()

    @property
    def ids(self) -> Ids:
        return Ids(self.author_uuid or "", self.author_number or "")


class Carried(Value, frozen=True, rename="camel"):
    """A file that came with a message; the daemon has it."""

    id: Known = None
    content_type: Known = None
    filename: Known = None
    size: int | None = None

    @property
    def unfetched(self) -> File:
        """The file as long as it isn't fetched; voice messages and pictures have no name of their own."""
        return File(self.filename or self.id or "file", self.content_type or "", "", self.size or 0)


class Club(Value, frozen=True, rename="camel"):
    """The group that a message is in."""

    group_id: str
    group_name: Known = None


class TakenBack(Value, frozen=True):
    """The message that its author deletes for everybody."""

    timestamp: int


class Said(Live, frozen=True, rename="camel"):
    """A message, or what else somebody does in a chat."""

    timestamp: int
    message: Known = None
    group_info: Club | None = None
    quote: Quoted | None = None
    mentions: tuple[Mentioned, ...] = ()
    attachments: tuple[Carried, ...] = ()
    remote_delete: TakenBack | None = None
    sticker: dict[str, Any] | None = None
    contacts: tuple[dict[str, Any], ...] = ()
    poll_create: dict[str, Any] | None = None
    payment: dict[str, Any] | None = None

    @property
    def foreign(self) -> str:
        """The kind of a message that has neither words nor a file."""
        kinds = {"sticker": self.sticker, "contacts": self.contacts, "poll": self.poll_create, "payment": self.payment}
        return next((kind for kind, is_there in kinds.items() if is_there), "")


class Edited(Live, frozen=True, rename="camel"):
    """A message in place of the one that was sent at that time: the first form of it, or the last."""

    target_sent_timestamp: int
    data_message: Said


class Copied(Live, frozen=True, rename="camel"):
    """What the account's person wrote on another of their devices, and to whom."""

    destination_uuid: Known = None
    destination_number: Known = None
    edit_message: Edited | None = None


class Copies(Live, frozen=True, rename="camel"):
    """Word from the other devices of the account."""

    sent_message: dict[str, Any] | None = None


class Envelope(Live, frozen=True, rename="camel"):
    """One thing that happened, and who did it."""

    source_uuid: Known = None
    source_number: Known = None
    source_name: Known = None
    data_message: Said | None = None
    edit_message: Edited | None = None
    sync_message: Copies | None = None

    @property
    def ids(self) -> Ids:
        return Ids(self.source_uuid or "", self.source_number or "")

    def noted(self, own: str) -> "Envelope":
        """The same as if its person had sent it: a note to themselves, which their other device tells of."""
        sent = self.sync_message.sent_message if self.sync_message else None
        if sent is None:
            return Envelope()
        copied = converted(sent, Copied)
        to = {copied.destination_uuid, copied.destination_number} - {None, ""}
        if sent.get("groupInfo") or not to & {own, *self.ids.all}:
            return Envelope()
        edit = copied.edit_message
        said = converted(sent, Said) if edit is None and "timestamp" in sent else None
        return msgspec.structs.replace(self, data_message=said, edit_message=edit)


class Event(Live, frozen=True):
    """An event of the daemon's stream."""

    envelope: Envelope


def decode(raw: Any) -> Envelope:
    """The envelope in what the daemon tells; raises `Invalid`."""
    try:
        return converted(raw, Event).envelope
    except msgspec.ValidationError as error:
        raise _strange(error) from error


def noted(envelope: Envelope, own: str) -> Envelope:
    """A note of the account's person to themselves, as a message; empty if it is none. Raises `Invalid`."""
    try:
        return envelope.noted(own)
    except msgspec.ValidationError as error:
        raise _strange(error) from error


def _strange(error: Exception) -> Invalid:
    return Invalid("envelope", str(error), "Segue may be older than the daemon.")
