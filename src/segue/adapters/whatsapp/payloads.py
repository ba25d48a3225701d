"""Webhooks of the Cloud API, decoded: the fields that are read, and nothing is trusted to have the right shape."""

from collections.abc import Mapping

from segue.adapters.whatsapp.graph import Fault
from segue.core.values import Plain, Value

_FILES = ("image", "video", "audio", "document", "sticker")


class Words(Value, frozen=True):
    body: str = ""


class Media(Value, frozen=True):
    id: str
    mime_type: str = ""
    caption: str = ""
    filename: str = ""


class Context(Value, frozen=True):
    """A message that this one answers, or whether it is passed on."""

    id: str = ""
    forwarded: bool = False
    frequently_forwarded: bool = False


class Choice(Value, frozen=True):
    id: str = ""


class Interactive(Value, frozen=True):
    """An answer to a message with buttons or a list."""

    button_reply: Choice = Choice()
    list_reply: Choice = Choice()


class Location(Value, frozen=True):
    latitude: float = 0.0
    longitude: float = 0.0
    name: str = ""
    address: str = ""

    @property
    def words(self) -> str:
        named = ", ".join(filter(None, (self.name, self.address)))
        return f"Location: {self.latitude}, {self.longitude}" + (f" ({named})" if named else "")


class Named(Value, frozen=True):
    name: str = ""
    formatted_name: str = ""


class Number(Value, frozen=True):
    phone: str = ""


class Card(Value, frozen=True):
    name: Named = Named()
    phones: tuple[Number, ...] = ()

    @property
    def words(self) -> str:
        numbers = (number.phone for number in self.phones if number.phone)
        return ", ".join((f"Contact: {self.name.formatted_name}", *numbers))


class System(Value, frozen=True):
    """Word that somebody's ids have changed."""

    type: str = ""
    wa_id: str = ""
    user_id: str = ""
    previous_user_id: str = ""


class Original(Value, frozen=True):
    """An earlier message that its author took back, or changed, with what it says now."""

    original_message_id: str = ""
    message: "Message | None" = None


class Message(Value, frozen=True, rename={"sender": "from", "sender_user": "from_user_id"}):
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
    contacts: tuple[Card, ...] = ()
    system: System = System()
    edit: Original = Original()
    revoke: Original = Original()

    @property
    def file(self) -> tuple[str, Media]:
        """Its file, with the kind that it is; without one there is no kind."""
        found = ((kind, getattr(self, kind)) for kind in _FILES)
        return next(((kind, file) for kind, file in found if file is not None), ("", Media("")))

    @property
    def words(self) -> str:
        """What it says; of what is no text, words for it."""
        spot = self.location.words if self.location else ""
        return self.text.body or self.file[1].caption or spot or "\n".join(card.words for card in self.contacts)


class Contact(Value, frozen=True):
    """Somebody who wrote, with the ids that they have."""

    wa_id: str = ""
    user_id: str = ""
    profile: Named = Named()


class Status(Value, frozen=True):
    """Word of what became of a message that was sent."""

    id: str
    status: str
    biz_opaque_callback_data: str = ""
    errors: tuple[Fault, ...] = ()


class Change(Value, frozen=True):
    """Things that happened to one number; each message and each status is read by itself."""

    metadata: Mapping[str, Plain] = {}
    """The number, by its id and as it is written."""
    contacts: tuple[Contact, ...] = ()
    messages: tuple[Plain, ...] = ()
    statuses: tuple[Plain, ...] = ()


class Changed(Value, frozen=True):
    value: Plain = None
    field: str = ""


class Entry(Value, frozen=True):
    changes: tuple[Changed, ...] = ()


class Webhook(Value, frozen=True):
    object: str
    entry: tuple[Entry, ...]
