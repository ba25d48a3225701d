"""A whole chat platform in memory: people, chats, threads, messages, and an adapter's account.

It delivers every message to the account, including the account's own, until that is acknowledged. It accepts the
messages that the account sends, and fails on demand. A subclass is a persona: it defines ids, threads and the limits of
texts.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from enum import Enum
from typing import ClassVar

import msgspec

from segue.core.contracts.database import Clock
from segue.core.lanes import Address, Kind
from segue.testing import wire
from segue.testing.asgi import Application, post
from segue.testing.chats import Chat, Someone, To
from segue.testing.faults import ApiError, Call, Fault, Faults, RateLimit, Slow
from segue.testing.ids import PLAIN, NewIds, Noun, Patterns
from segue.testing.inbox import Shelf
from segue.testing.ledger import Attached, Ledger, Message
from segue.testing.waits import Changes
from segue.testing.wire import Feed, Update, Writer

PROOF = "x-fake-proof"
"""The header in which the platform proves that a webhook call is its own."""


class Threads(Enum):
    """How a platform has threads."""

    NONE = "there are none"
    ANCHORED = "a thread hangs on a message"
    SEPARATE = "a thread is a place of its own"


class Platform:
    """A platform as one account sees it. Personas are subclasses."""

    name = "fake"
    space = ""
    ids: ClassVar[Patterns] = PLAIN
    threads = Threads.NONE
    longest = 4096
    """The longest text, in the platform's own unit."""
    count: ClassVar[Callable[[str], int]] = len
    tells_deletions = False
    """Whether it reports deleted messages and who deleted them."""
    keys_last = 0.0
    """How long a repeated key returns the first message, in seconds."""

    def __init__(self, account: str = "main", clock: Clock = time.time) -> None:
        self.account = account
        self.clock = clock
        self.secret = f"the secret of {account}"
        self.changes = Changes()
        self.faults = Faults(self.changes)
        self.feed = Feed(self.changes)
        self.ledger = Ledger()
        self.typed: list[Address] = []
        """The addresses at which the agent showed a typing indicator."""
        self.told: list[bytes] = []
        """The body of every update so far."""
        self.chats: dict[str, Chat] = {}
        self.files: dict[str, bytes] = {}
        """Files that people sent, by id."""
        self.shelf = Shelf()
        """The files that its adapters stored."""
        self.new = NewIds(self.ids, clock)

    # Actions of a test

    def person(self, name: str) -> Someone:
        """Add a person."""
        return Someone(self, name, self.new.make(Noun.PERSON))

    def dm(self, of: Someone) -> Chat:
        """Return a person's private chat with the agent."""
        known = next((chat for chat in self.chats.values() if chat.of is of), None)
        return known or self._begin(Chat(self, self.new.make(Noun.DM) or of.ids, Kind.DM, of.name, of))

    def group(self, name: str = "lobby", kind: Kind = Kind.GROUP) -> Chat:
        """Add a chat of several people."""
        return self._begin(Chat(self, self.new.make(Noun.GROUP), kind, name))

    def at(self, address: Address) -> Chat:
        """Return the chat or thread at an address."""
        chat, thread = self.spot(address)
        return self.chats[chat].within(thread) if thread else self.chats[chat]

    def misbehaves(self, fault: Fault | RateLimit | Slow, on: Call | None = Call.SEND, times: int | None = 1) -> None:
        """Make the next calls fail.

        If `on` is None, all kinds of calls fail; if `times` is None, they fail until `recovers`.
        """
        self.faults.plan(fault, on, times)

    def goes_down(self) -> None:
        """Block all traffic until `recovers`."""
        self.feed.open = False
        self.faults.plan(Fault.UNREACHABLE, None, None)

    def recovers(self) -> None:
        """Remove all faults, and break off hanging calls."""
        self.feed.open = True
        self.faults.clear()

    async def called(self, call: Call, times: int = 1) -> None:
        """Wait until the account has made a call this many times."""
        calls = self.faults.calls
        await self.changes.until(
            lambda: True if calls[call] >= times else None,
            lambda: f"{call} was called {calls[call]} times, not {times}",
        )

    async def settles(self) -> None:
        """Wait until every update is acknowledged."""
        await self.changes.until(
            lambda: None if self.feed.unacknowledged else True,
            lambda: f"{self.feed.unacknowledged} updates were never acknowledged",
        )

    def tells_again(self) -> None:
        """Deliver every update again, acknowledged or not."""
        for body in self.told:
            self.feed.put(body, wire.proof(self.secret, body))

    @asynccontextmanager
    async def calling(self, app: Application, path: str = "/") -> AsyncIterator[None]:
        """Deliver to a webhook inside the block. An update is repeated until its response isn't 5xx."""
        delivering = asyncio.create_task(self._deliver(app, path))
        try:
            yield
        finally:
            delivering.cancel()
            await asyncio.wait([delivering])

    @asynccontextmanager
    async def reaching(self, webhooks: Iterable[tuple[str, Application]]) -> AsyncIterator[None]:
        """Deliver to a gateway inside the block, if this account has a webhook. A polling adapter needs none."""
        async with AsyncExitStack() as stack:
            for path, app in webhooks:
                if path == f"/in/{self.name}/{self.account}":
                    await stack.enter_async_context(self.calling(app, path))
            yield

    async def _deliver(self, app: Application, path: str) -> None:
        async for parcel in self.feed.parcels():
            pause = 0.001
            while (await post(app, path, parcel.body, {PROOF: parcel.proof})).status >= 500:
                await asyncio.sleep(pause)
                pause = min(2 * pause, 0.1)
            self.feed.acknowledge(parcel)

    # Rules that personas override

    def tellings(self, update: Update) -> Sequence[Update]:
        """Return the updates that the account receives for one event."""
        return [update]

    def fits(self, text: str) -> bool:
        """Return whether a text fits into one message."""
        return type(self).count(text) <= self.longest

    def fitting(self, text: str) -> str:
        """Return the text as it is sent; refuse an empty or too long one."""
        if not text.strip():
            raise ApiError(400, "the text is empty")
        if not self.fits(text):
            raise ApiError(400, f"the text is longer than {self.longest}")
        return text

    def address(self, chat: str, thread: str = "") -> Address:
        """Return the address of a chat or thread, as adapters write it."""
        return Address(self.name, self.account, self.space, chat, thread)

    def spot(self, address: Address) -> tuple[str, str]:
        """Return the chat and thread of an address."""
        chat = next((chat.id for chat in self.chats.values() if address.chat in chat.ids), None)
        if chat is None:
            raise ApiError(404, f"no chat {address.chat!r}")
        anchored = self.threads is Threads.ANCHORED and self.ledger.has(chat, address.thread)
        if address.thread and not anchored and address.thread not in self.ledger.threads(chat):
            raise ApiError(404, f"no thread {address.thread!r} in chat {chat!r}")
        return chat, address.thread

    # Events on the platform

    def hears(self, by: Someone, chat: Chat, text: str, quoting: Message | None, to: To) -> Message:
        """Write as a person."""
        return self._write(chat.id, chat.thread, text, by, quotes=quoting.id if quoting else "", to=to)

    def gets_file(self, by: Someone, chat: Chat, name: str, content: bytes, text: str, to: To) -> Message:
        """Send a file as a person."""
        id = f"file-{len(self.files)}"
        self.files[id] = content
        [message] = self.new.make(Noun.MESSAGE, chat.id)
        file = Attached(id, name, len(content))
        return self._add(Message(message, chat.id, chat.thread, by.name, text, self.clock(), files=(file,)), by, to)

    def sends(self, address: Address, text: str, key: str, only: str = "") -> Message:
        """Send as the agent, to everybody or one person.

        While keys last, a repeated key returns the first message.
        """
        chat, thread = self.spot(address)
        known = self.ledger.keyed(key)
        if known is not None and self.clock() - known.at < self.keys_last:
            return known
        return self._write(chat, thread, self.fitting(text), None, key, only=only)

    def rewrites(self, message: Message, text: str, by: Someone | None) -> Message:
        """Edit a message as its author, who may be the agent."""
        changed = self.ledger.change(message, self.fitting(text))
        self.changes.tell()
        self._tell(changed, by, To.EVERYONE, edits=message.id)
        return changed

    def takes_back(self, message: Message, by: Someone) -> None:
        """Delete a message as its author."""
        self.ledger.remove(message)
        self.changes.tell()
        if self.tells_deletions:
            gone = msgspec.structs.replace(message, text="")
            self._tell(gone, by, To.EVERYONE, deletes=message.id)

    def opens(self, chat: Chat, title: str, by: Someone | None, key: str = "") -> str:
        """Open a thread as a person or the agent; return its id."""
        if self.threads is Threads.NONE:
            raise ApiError(400, "there are no threads here")
        root = self._write(chat.id, "", title, by, key) if self.threads is Threads.ANCHORED else None
        [thread] = self.new.make(Noun.THREAD, chat.id) or ((root.id,) if root else ())
        self.ledger.open_thread(chat.id, thread, title, key)
        self.changes.tell()
        return thread

    def _begin(self, chat: Chat) -> Chat:
        self.chats[chat.id] = chat
        return chat

    def _write(
        self,
        chat: str,
        thread: str,
        text: str,
        by: Someone | None,
        key: str = "",
        quotes: str = "",
        to: To = To.EVERYONE,
        only: str = "",
    ) -> Message:
        [id] = self.new.make(Noun.MESSAGE, chat)
        message = Message(id, chat, thread, by.name if by else "", text, self.clock(), key, quotes, only=only)
        return self._add(message, by, to)

    def _add(self, message: Message, by: Someone | None, to: To) -> Message:
        self.ledger.add(message)
        self.changes.tell()
        self._tell(message, by, to)
        return message

    def _tell(self, message: Message, by: Someone | None, to: To, edits: str = "", deletes: str = "") -> None:
        chat = self.chats[message.chat]
        # A private chat without ids of its own has the ids that its person shows.
        known, *aliases = chat.of.shown if chat.of and chat.of.ids == chat.ids else chat.ids
        address = self.address(known, message.thread)
        [event] = self.new.make(Noun.EVENT, message=message.id)
        writer = Writer(by.shown[0], by.name, by.shown[1:]) if by else Writer("agent", "agent", agent=True)
        update = Update(
            event=event,
            message=message.id,
            chat=address.chat,
            kind=chat.kind,
            by=writer,
            text=message.text,
            at=self.clock(),
            space=self.space,
            chat_name=chat.name,
            chat_aliases=tuple(aliases),
            topic=chat.topic,
            thread=address.thread,
            quotes=message.quotes,
            edits=edits,
            mentions=to is To.AGENT,
            deletes=deletes,
            files=message.files,
        )
        for telling in self.tellings(update):
            body = wire.encode(telling)
            self.told.append(body)
            self.feed.put(body, wire.proof(self.secret, body))


def utf16(text: str) -> int:
    """Return the length of a text in UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def utf8(text: str) -> int:
    """Return the length of a text in bytes."""
    return len(text.encode())
