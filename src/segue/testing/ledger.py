"""The present messages and threads of the fake platform."""

from collections import defaultdict

import msgspec

from segue.core.values import Moment, Value
from segue.testing.faults import ApiError


class Attached(Value, frozen=True):
    """A file of a message: its name, and its id for fetching."""

    id: str
    name: str
    size: int = 0


class Message(Value, frozen=True):
    """One message in its present form."""

    id: str
    chat: str
    thread: str
    by: str
    """The author's name; empty for the agent."""
    text: str
    at: Moment
    key: str = ""
    """The key of the agent's message."""
    quotes: str = ""
    edits: int = 0
    """The number of its edits."""
    only: str = ""
    """The only person who sees it; empty for everybody."""
    files: tuple[Attached, ...] = ()


class Ledger:
    """The messages by chat and thread, in the order in which they were written."""

    def __init__(self) -> None:
        self._messages: dict[tuple[str, str], Message] = {}
        self._spots: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        self._keys: dict[str, tuple[str, str]] = {}
        self._threads: dict[tuple[str, str], str] = {}
        self._opened: dict[str, tuple[str, str]] = {}

    def add(self, message: Message) -> None:
        """Add a new message."""
        self._messages[message.chat, message.id] = message
        self._spots[message.chat, message.thread].append(message.id)
        if message.key:
            self._keys[message.key] = (message.chat, message.id)

    def change(self, message: Message, text: str) -> Message:
        """Replace a message's text."""
        now = self.message(message.chat, message.id)
        changed = msgspec.structs.replace(now, text=text, edits=now.edits + 1)
        self._messages[message.chat, message.id] = changed
        return changed

    def remove(self, message: Message) -> None:
        """Delete a message."""
        del self._messages[message.chat, message.id]
        self._spots[message.chat, message.thread].remove(message.id)

    def message(self, chat: str, id: str) -> Message:
        """Return a message by its id."""
        found = self._messages.get((chat, id))
        if found is None:
            raise ApiError(404, f"no message {id!r} in chat {chat!r}")
        return found

    def keyed(self, key: str) -> Message | None:
        """Find the newest message that was sent with a key."""
        return self._messages.get(self._keys[key]) if key in self._keys else None

    def at(self, chat: str, thread: str) -> list[Message]:
        """Return the messages in a chat or thread, oldest first."""
        return [self._messages[chat, id] for id in self._spots.get((chat, thread), ())]

    def has(self, chat: str, id: str) -> bool:
        """Return whether a message exists."""
        return (chat, id) in self._messages

    def open_thread(self, chat: str, thread: str, title: str, key: str) -> None:
        """Add a new thread."""
        self._threads[thread, chat] = title
        if key:
            self._opened[key] = (chat, thread)

    def opened(self, key: str) -> tuple[str, str] | None:
        """Find the chat and thread that were opened with a key."""
        return self._opened.get(key)

    def threads(self, chat: str) -> dict[str, str]:
        """Return the titles of a chat's threads by id, in the order in which they were opened."""
        return {thread: title for (thread, parent), title in self._threads.items() if parent == chat}

    def parent(self, thread: str) -> str | None:
        """Return the chat of a thread, where thread ids are unique."""
        return next((chat for id, chat in self._threads if id == thread), None)
