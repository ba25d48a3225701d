"""The people and chats of a fake platform, from the people's point of view."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from segue.core.lanes import Address, Identity, Kind, Place
from segue.testing.ledger import Message

if TYPE_CHECKING:
    from segue.testing.platform import Platform

T = TypeVar("T")


class To(Enum):
    """The recipients of a message."""

    EVERYONE = "everyone there"
    AGENT = "the agent, by its name"


class Chat:
    """A chat, or a thread in one."""

    def __init__(
        self, platform: "Platform", ids: Sequence[str], kind: Kind, name: str, of: "Someone | None" = None
    ) -> None:
        self.platform = platform
        self.ids = tuple(ids)
        self.kind = kind
        self.name = name
        self.of = of
        """The owner of a private chat."""
        self.topic = ""
        self.thread = ""
        self.title = ""
        """The thread's own title."""

    @property
    def id(self) -> str:
        """The first of the platform's ids for the chat."""
        return self.ids[0]

    @property
    def address(self) -> Address:
        """The chat's address as the gateway uses it."""
        return self.platform.address(self.id, self.thread)

    @property
    def place(self) -> Place:
        """The address with its kind, name and topic."""
        return Place(self.address, self.kind, self.name, self.topic)

    def within(self, thread: str) -> "Chat":
        """Return a thread of this chat."""
        inner = Chat(self.platform, self.ids, self.kind, self.name, self.of)
        inner.topic, inner.thread = self.topic, thread
        inner.title = self.platform.ledger.threads(self.id).get(thread, "")
        return inner

    @property
    def threads(self) -> list["Chat"]:
        """The threads of this chat, in the order in which they were opened."""
        return [self.within(thread) for thread in self.platform.ledger.threads(self.id)]

    @property
    def messages(self) -> list[Message]:
        """The present messages of this chat, oldest first."""
        return self.platform.ledger.at(self.id, self.thread)

    @property
    def replies(self) -> list[str]:
        """The agent's present messages here."""
        return [message.text for message in self.messages if not message.by]

    async def reads(self, text: str) -> Message:
        """Wait for the agent's message with exactly this text."""
        return await self._until(
            lambda: next((m for m in self.messages if not m.by and m.text == text), None), f"never read {text!r}"
        )

    async def reads_some(self, count: int = 1) -> list[str]:
        """Wait until the agent has sent this many messages here."""
        return await self._until(
            lambda: self.replies if len(self.replies) >= count else None, f"never read {count} replies"
        )

    async def sees_thread(self) -> "Chat":
        """Wait until there is a thread; return the newest."""
        return await self._until(lambda: self.threads[-1] if self.threads else None, "never saw a thread")

    async def _until(self, look: Callable[[], T | None], missing: str) -> T:
        return await self.platform.changes.until(look, lambda: f"{self.address.key} {missing}; it has {self.replies!r}")


class Someone:
    """A person on the platform, who may have several ids."""

    def __init__(self, platform: "Platform", name: str, ids: Sequence[str]) -> None:
        self.platform = platform
        self.name = name
        self.ids = tuple(ids)
        self.shown = self.ids
        """The ids that the platform shows."""

    @property
    def identity(self) -> Identity:
        """Their first identity for the account."""
        return Identity(self.platform.name, self.platform.account, self.ids[0])

    def shows(self, *ids: str) -> None:
        """From now on, show only these ids."""
        self.shown = ids

    def says(self, text: str, chat: Chat, quoting: Message | None = None, to: To = To.EVERYONE) -> Message:
        """Write a message."""
        return self.platform.hears(self, chat, text, quoting, to)

    def attaches(self, name: str, content: bytes, chat: Chat, text: str = "", to: To = To.EVERYONE) -> Message:
        """Send a file, with a text if there is one."""
        return self.platform.gets_file(self, chat, name, content, text, to)

    def edits(self, message: Message, text: str) -> Message:
        """Edit a message of theirs."""
        return self.platform.rewrites(message, text, self)

    def deletes(self, message: Message) -> None:
        """Delete a message of theirs."""
        self.platform.takes_back(message, self)

    def sees(self, chat: Chat) -> list[str]:
        """Return the agent's messages in a chat that this person can see."""
        return [m.text for m in chat.messages if not m.by and (not m.only or m.only in self.ids)]

    def opens_thread(self, title: str, chat: Chat) -> Chat:
        """Open a thread. Where threads hang on a message, the title is that message."""
        return chat.within(self.platform.opens(chat, title, self))
