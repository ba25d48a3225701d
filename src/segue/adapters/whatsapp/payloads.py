"""Webhooks of the Cloud API, decoded: the fields that are read, and nothing is trusted to have the right shape."""

import mimetypes
from typing import Any

from segue.adapters.shared import decoding
from segue.core.messages import File
from segue.core.values import Live, Value

MEDIA = ("image", "video", "audio", "document", "sticker")


class Words(Value, frozen=True):
    """A text."""

    body: str = ""


class Media(Value, frozen=True):
    """A file of a message, which lies with WhatsApp."""

    id: str
    mime_type: str = ""
    caption: str = ""
    filename: str = ""

    def named(self, kind: str) -> File:
        """The file as long as it isn't fetched."""
        media = self.mime_type.partition(";")[0].strip()
        name = self.filename or f"{kind}{mimetypes.guess_extension(media) or ''}"
        return File(name, media, "", 0)


class Context(Value, frozen=True):
    """A message that this one answers, or whether it is passed on."""

    id: str = ""
    forwarded: bool = False
    frequently_forwarded: bool = False


class Choice(Value, frozen=True):
    """A button, or a line of a list, that was pressed."""

    id: str = ""


class Interactive(Value, frozen=True):
    """An answer to a message with buttons or a list."""

    button_reply: Choice = Choice()
    list_reply: Choice = Choice()


class Location(Value, frozen=True):
    """A place on the map."""

    latitude: float = 0.0
    longitude: float = 0.0
    name: str = ""
    address: str = ""


class System(Value, frozen=True):
    """Word that somebody's ids have changed."""

    type: str = ""
    wa_id: str = ""
    user_id: str = ""
    previous_user_id: str = ""


class Edit(Value, frozen=True):
    """A message that its author changed."""

    original_message_id: str
    message: "Message"


class Revoke(Value, frozen=True):
    """A message that its author took back."""

    original_message_id: str


class Message(Value, frozen=True, rename={"sender": "from", "sender_user": "from_user_id"}):
    """Something that somebody sent."""

    id: str = ""
    type: str = ""
    timestamp: str = ""
    sender: str = ""
    """Their number; it may be missing."""
    sender_user: str = ""
    """Their user id; it may be missing, too."""
    group_id: str = ""
    context: Context = Context()
    text: Words = Words()
    image: Media | None = None
    video: Media | None = None
    audio: Media | None = None
    document: Media | None = None
    sticker: Media | None = None
    interactive: Interactive = Interactive()
    location: Location | None = None
    contacts: tuple["Card", ...] = ()
    system: System = System()
    edit: Edit | None = None
    revoke: Revoke | None = None

    @property
    def media(self) -> tuple[str, Media] | None:
        """Its file, with the kind that it is."""
        found = ((kind, getattr(self, kind)) for kind in MEDIA)
        return next(((kind, file) for kind, file in found if file is not None), None)


class Named(Value, frozen=True):
    """A name, as it is written."""

    name: str = ""
    formatted_name: str = ""


class Number(Value, frozen=True):
    """A telephone number."""

    phone: str = ""


class Card(Value, frozen=True):
    """Somebody whose number is passed on."""

    name: Named = Named()
    phones: tuple[Number, ...] = ()


class Contact(Value, frozen=True):
    """Somebody who wrote, with the ids that they have."""

    wa_id: str = ""
    user_id: str = ""
    profile: Named = Named()


class Fault(Value, frozen=True):
    """A reason why something wasn't done."""

    code: int = 0
    title: str = ""
    message: str = ""
    error_data: "Details | None" = None

    @property
    def words(self) -> str:
        """The reason, as WhatsApp words it."""
        return (self.error_data and self.error_data.details) or self.message or self.title or f"error {self.code}"


class Details(Value, frozen=True):
    """The reason, in more words."""

    details: str = ""


class Status(Value, frozen=True):
    """Word of what became of a message that was sent."""

    id: str
    status: str
    biz_opaque_callback_data: str = ""
    errors: tuple[Fault, ...] = ()


class OwnNumber(Value, frozen=True):
    """The number that something happened to."""

    phone_number_id: str = ""
    display_phone_number: str = ""


class Change(Live, frozen=True):
    """Things that happened to one number; each message and each status is read by itself."""

    metadata: OwnNumber = OwnNumber()
    contacts: tuple[Contact, ...] = ()
    messages: tuple[Any, ...] = ()
    statuses: tuple[Any, ...] = ()


class Changed(Live, frozen=True):
    """A change, and the kind that it is of."""

    value: Any = None
    field: str = ""


class Entry(Live, frozen=True):
    """Changes of one business."""

    changes: tuple[Changed, ...] = ()


class Webhook(Live, frozen=True):
    """The body of a call."""

    object: str
    entry: tuple[Entry, ...]


def decode(raw: object, kind: type[Value]) -> Any:
    """What was told, from what JSON held; raises `Invalid`."""
    return decoding.decode(raw, kind, "The Cloud API")
