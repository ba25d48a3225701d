"""People and the chats that they are in, as they see them."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from segue.core.lanes import Address, Identity, Kind, Place
from segue.testing.ledger import Message

if TYPE_CHECKING:
    from segue.testing.platform import Platform

T = TypeVar("T")


class To(Enum):
    """Whom a message is for."""

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
        """Whose private chat it is."""
        self.topic = ""
        self.thread = ""
        self.title = ""
        """The thread's own name."""

    @property
    def id(self) -> str:
        """The platform's first id of the chat."""
        return self.ids[0]

    @property
    def address(self) -> Address:
        """The address to which the gateway sends, to be read here."""
        return self.platform.address(self.id, self.thread)

    @property
    def place(self) -> Place:
        """The address with what is known about it."""
        return Place(self.address, self.kind, self.name, self.topic)

    def within(self, thread: str) -> "Chat":
        """A thread of this chat."""
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
        """The messages here now, the oldest first."""
        return self.platform.ledger.at(self.id, self.thread)

    @property
    def replies(self) -> list[str]:
        """The agent's messages here, as they stand now."""
        return [message.text for message in self.messages if not message.by]

    async def reads(self, text: str) -> Message:
        """Wait until the agent's message of exactly this text is there."""
        return await self._until(
            lambda: next((m for m in self.messages if not m.by and m.text == text), None), f"never read {text!r}"
        )

    async def reads_some(self, count: int = 1) -> list[str]:
        """Wait until the agent has said so many things here."""
        return await self._until(
            lambda: self.replies if len(self.replies) >= count else None, f"never read {count} replies"
        )

    async def sees_thread(self) -> "Chat":
        """Wait until there is a thread, and return the newest."""
        return await self._until(lambda: self.threads[-1] if self.threads else None, "never saw a thread")

    async def _until(self, look: Callable[[], T | None], missing: str) -> T:
        return await self.platform.changes.until(look, lambda: f"{self.address.key} {missing}; it has {self.replies!r}")


class Someone:
    """A person on the platform; all ids name the same one."""

    def __init__(self, platform: "Platform", name: str, ids: Sequence[str]) -> None:
        self.platform = platform
        self.name = name
        self.ids = tuple(ids)
        self.shown = self.ids
        """The ids that the platform tells of them."""

    @property
    def identity(self) -> Identity:
        """Their first identity for the account."""
        return Identity(self.platform.name, self.platform.account, self.ids[0])

    def shows(self, *ids: str) -> None:
        """From now on the platform tells only these of their ids."""
        self.shown = ids

    def says(self, text: str, chat: Chat, quoting: Message | None = None, to: To = To.EVERYONE) -> Message:
        """Write a message."""
        return self.platform.hears(self, chat, text, quoting, to)

    def attaches(self, name: str, content: bytes, chat: Chat, text: str = "", to: To = To.EVERYONE) -> Message:
        """Send a file, perhaps with words."""
        return self.platform.gets_file(self, chat, name, content, text, to)

    def edits(self, message: Message, text: str) -> Message:
        """Change what they wrote."""
        return self.platform.rewrites(message, text, self)

    def deletes(self, message: Message) -> None:
        """Take back what they wrote."""
        self.platform.takes_back(message, self)

    def sees(self, chat: Chat) -> list[str]:
        """The agent's messages in a chat, as far as they are shown them."""
        return [m.text for m in chat.messages if not m.by and (not m.only or m.only in self.ids)]

    def opens_thread(self, title: str, chat: Chat) -> Chat:
        """Open a thread themselves; where a thread hangs on a message, the title is that message."""
        return chat.within(self.platform.opens(chat, title, self))
