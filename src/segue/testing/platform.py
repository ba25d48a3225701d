"""A whole chat platform in memory: people, chats, threads, messages, and an account that an adapter speaks for.

It tells the account of everything that is written, its own messages too, until that is acknowledged; it takes what the
account sends; and it misbehaves when told to. A persona is a subclass: how ids look, where threads are, what a text may
be.
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
"""The header with which the platform proves that a webhook call is its own."""


class Threads(Enum):
    """The place of threads on a platform."""

    NONE = "there are none"
    ANCHORED = "a thread hangs on a message"
    SEPARATE = "a thread is a place of its own"


class Platform:
    """One platform, seen by one account; a persona says in what it differs."""

    name = "fake"
    space = ""
    ids: ClassVar[Patterns] = PLAIN
    threads = Threads.NONE
    longest = 4096
    """The longest text, as the platform counts it."""
    count: ClassVar[Callable[[str], int]] = len
    tells_deletions = False
    """It says that somebody took a message back, and who."""
    keys_last = 0.0
    """Seconds for which the same key gives the same message."""

    def __init__(self, account: str = "main", clock: Clock = time.time) -> None:
        self.account = account
        self.clock = clock
        self.secret = f"the secret of {account}"
        self.changes = Changes()
        self.faults = Faults(self.changes)
        self.feed = Feed(self.changes)
        self.ledger = Ledger()
        self.typed: list[Address] = []
        """The addresses at which the agent was seen writing."""
        self.told: list[bytes] = []
        """Every body that was ever told."""
        self.chats: dict[str, Chat] = {}
        self.files: dict[str, bytes] = {}
        """Files that people sent, by id."""
        self.shelf = Shelf()
        """The files that its adapters keep."""
        self.new = NewIds(self.ids, clock)

    # What a test does

    def person(self, name: str) -> Someone:
        """Somebody new."""
        return Someone(self, name, self.new.make(Noun.PERSON))

    def dm(self, of: Someone) -> Chat:
        """The private chat of somebody with the agent."""
        known = next((chat for chat in self.chats.values() if chat.of is of), None)
        return known or self._begin(Chat(self, self.new.make(Noun.DM) or of.ids, Kind.DM, of.name, of))

    def group(self, name: str = "lobby", kind: Kind = Kind.GROUP) -> Chat:
        """A new chat of several people."""
        return self._begin(Chat(self, self.new.make(Noun.GROUP), kind, name))

    def at(self, address: Address) -> Chat:
        """The chat or thread that an address leads to."""
        chat, thread = self.spot(address)
        return self.chats[chat].within(thread) if thread else self.chats[chat]

    def misbehaves(self, fault: Fault | RateLimit | Slow, on: Call | None = Call.SEND, times: int | None = 1) -> None:
        """Let the next calls go wrong: all kinds of calls if `on` is None, until it recovers if `times` is."""
        self.faults.plan(fault, on, times)

    def goes_down(self) -> None:
        """Nothing gets in or out until it recovers."""
        self.feed.open = False
        self.faults.plan(Fault.UNREACHABLE, None, None)

    def recovers(self) -> None:
        """All is well again; calls that hang break off."""
        self.feed.open = True
        self.faults.clear()

    async def called(self, call: Call, times: int = 1) -> None:
        """Wait until the account has made a call so many times."""
        calls = self.faults.calls
        await self.changes.until(
            lambda: True if calls[call] >= times else None,
            lambda: f"{call} was called {calls[call]} times, not {times}",
        )

    async def settles(self) -> None:
        """Wait until everything told was acknowledged."""
        await self.changes.until(
            lambda: None if self.feed.unacknowledged else True,
            lambda: f"{self.feed.unacknowledged} updates were never acknowledged",
        )

    def tells_again(self) -> None:
        """Tell everything that was ever told once more, acknowledged or not."""
        for body in self.told:
            self.feed.put(body, wire.proof(self.secret, body))

    @asynccontextmanager
    async def calling(self, app: Application, path: str = "/") -> AsyncIterator[None]:
        """Deliver to a webhook while inside: each update again until the answer isn't 5xx."""
        delivering = asyncio.create_task(self._deliver(app, path))
        try:
            yield
        finally:
            delivering.cancel()
            await asyncio.wait([delivering])

    @asynccontextmanager
    async def reaching(self, webhooks: Iterable[tuple[str, Application]]) -> AsyncIterator[None]:
        """Deliver to a gateway while inside, if it has a webhook for this account; one that fetches needs none."""
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

    # What a persona decides

    def tellings(self, update: Update) -> Sequence[Update]:
        """The updates that the account gets of one."""
        return [update]

    def fits(self, text: str) -> bool:
        """Whether it takes a text as one message."""
        return type(self).count(text) <= self.longest

    def fitting(self, text: str) -> str:
        """The text as it is sent; an empty one and too long a one are refused."""
        if not text.strip():
            raise ApiError(400, "the text is empty")
        if not self.fits(text):
            raise ApiError(400, f"the text is longer than {self.longest}")
        return text

    def address(self, chat: str, thread: str = "") -> Address:
        """The address of a spot, as adapters form it."""
        return Address(self.name, self.account, self.space, chat, thread)

    def spot(self, address: Address) -> tuple[str, str]:
        """The chat and thread behind an address."""
        chat = next((chat.id for chat in self.chats.values() if address.chat in chat.ids), None)
        if chat is None:
            raise ApiError(404, f"no chat {address.chat!r}")
        anchored = self.threads is Threads.ANCHORED and self.ledger.has(chat, address.thread)
        if address.thread and not anchored and address.thread not in self.ledger.threads(chat):
            raise ApiError(404, f"no thread {address.thread!r} in chat {chat!r}")
        return chat, address.thread

    # What happens on the platform

    def hears(self, by: Someone, chat: Chat, text: str, quoting: Message | None, to: To) -> Message:
        """Somebody writes."""
        return self._write(chat.id, chat.thread, text, by, quotes=quoting.id if quoting else "", to=to)

    def gets_file(self, by: Someone, chat: Chat, name: str, content: bytes, text: str, to: To) -> Message:
        """Somebody sends a file."""
        id = f"file-{len(self.files)}"
        self.files[id] = content
        [message] = self.new.make(Noun.MESSAGE, chat.id)
        file = Attached(id, name, len(content))
        return self._add(Message(message, chat.id, chat.thread, by.name, text, self.clock(), files=(file,)), by, to)

    def sends(self, address: Address, text: str, key: str, only: str = "") -> Message:
        """The agent writes, perhaps to one person only; while keys last, the same key gives the same message."""
        chat, thread = self.spot(address)
        known = self.ledger.keyed(key)
        if known is not None and self.clock() - known.at < self.keys_last:
            return known
        return self._write(chat, thread, self.fitting(text), None, key, only=only)

    def rewrites(self, message: Message, text: str, by: Someone | None) -> Message:
        """Somebody, or the agent, changes a message of theirs."""
        changed = self.ledger.change(message, self.fitting(text))
        self.changes.tell()
        self._tell(changed, by, To.EVERYONE, edits=message.id)
        return changed

    def takes_back(self, message: Message, by: Someone) -> None:
        """Somebody deletes a message of theirs."""
        self.ledger.remove(message)
        self.changes.tell()
        if self.tells_deletions:
            gone = msgspec.structs.replace(message, text="")
            self._tell(gone, by, To.EVERYONE, deletes=message.id)

    def opens(self, chat: Chat, title: str, by: Someone | None, key: str = "") -> str:
        """Somebody, or the agent, opens a thread; returns its id."""
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
        # A private chat that goes by its person's ids is told by those that the person shows.
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
    """The UTF-16 units of a text."""
    return len(text.encode("utf-16-le")) // 2


def utf8(text: str) -> int:
    """The bytes of a text."""
    return len(text.encode())
