"""Events of Feishu's, decoded: the fields that are read, and nothing is trusted to have the right shape."""

from collections.abc import Mapping
from typing import Any

from segue.adapters.shared import decoding
from segue.core.values import Live, Moment, Value
from segue.errors import Invalid


class UserId(Value, frozen=True):
    """Somebody, by the id that the app knows them by."""

    open_id: str = ""


class Mention(Value, frozen=True):
    """Somebody who is mentioned, and the words that stand for them in a text."""

    key: str = ""
    id: UserId | str = UserId()
    """In a message that was fetched, the id alone."""
    name: str = ""

    @property
    def who(self) -> str:
        """The id of whoever it is."""
        return self.id if isinstance(self.id, str) else self.id.open_id


class Sender(Value, frozen=True):
    """The sender of a message."""

    sender_id: UserId = UserId()
    sender_type: str = ""


class Message(Value, frozen=True):
    """A message."""

    message_id: str
    chat_id: str = ""
    chat_type: str = ""
    message_type: str = ""
    content: str = ""
    create_time: str | int = 0
    update_time: str | int = 0
    root_id: str = ""
    parent_id: str = ""
    thread_id: str = ""
    mentions: tuple[Mention, ...] = ()

    @property
    def thread(self) -> str:
        """The root of the thread that it is in; the message itself, if it is that."""
        return (self.root_id or self.message_id) if self.thread_id else ""

    @property
    def quotes(self) -> str:
        """The message that it answers; in a thread, whatever is said answers the root."""
        return "" if self.thread_id and self.parent_id == self.root_id else self.parent_id


class Received(Value, frozen=True):
    """That somebody wrote."""

    sender: Sender
    message: Message


class Named(Value, frozen=True):
    """A message, by its id alone."""

    message_id: str = ""


class Updated(Value, frozen=True):
    """That a message was edited."""

    message: Named = Named()


class Recalled(Value, frozen=True):
    """That a message was taken back."""

    message_id: str
    chat_id: str
    recall_type: str = ""


class BotAdded(Value, frozen=True):
    """That the bot was brought into a group."""

    chat_id: str
    operator_id: UserId = UserId()
    name: str = ""


class CardAction(Live, frozen=True):
    """The button of a card, with what we gave it."""

    value: Mapping[str, Any] = {}


class CardContext(Value, frozen=True):
    """The card that something was pressed in."""

    open_message_id: str = ""
    open_chat_id: str = ""


class CardPress(Live, frozen=True):
    """That somebody pressed a button."""

    operator: UserId
    action: CardAction = CardAction()
    context: CardContext = CardContext()


class FetchedSender(Value, frozen=True):
    """The sender of a message that was fetched."""

    id: str = ""
    sender_type: str = ""


class FetchedBody(Value, frozen=True):
    """The content of a message that was fetched."""

    content: str = ""


class Fetched(Value, frozen=True):
    """A message that was fetched."""

    message_id: str
    chat_id: str = ""
    msg_type: str = ""
    create_time: str | int = 0
    root_id: str = ""
    thread_id: str = ""
    upper_message_id: str = ""
    sender: FetchedSender = FetchedSender()
    body: FetchedBody = FetchedBody()
    mentions: tuple[Mention, ...] = ()


class Header(Value, frozen=True):
    """The kind of an event, and the id by which a second delivery is told."""

    event_type: str = ""
    event_id: str = ""
    token: str = ""
    create_time: str | int = 0


class Callback(Live, frozen=True):
    """An event as it is delivered."""

    header: Header
    event: Mapping[str, Any] = {}


def decode(raw: object, kind: type[Value]) -> Any:
    """What was delivered, from what JSON held; raises `Invalid`."""
    return decoding.decode(raw, kind, "Feishu")


def moment(milliseconds: str | int) -> Moment:
    """The time that Feishu names in milliseconds."""
    try:
        return int(milliseconds) / 1000
    except ValueError as error:
        raise Invalid("create_time", f"{milliseconds!r} is no time", "It is milliseconds since 1970.") from error
