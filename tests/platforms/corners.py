"""Where people talk: on Telegram, Matrix, Slack, Discord, Feishu, Signal and WhatsApp; what they see there."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from segue.core.lanes import Address
from segue.core.messages import PLACEHOLDER
from segue.runtime.outbox import MAYBE
from tests.adapters.discord import shown
from tests.adapters.matrix import User
from tests.servers.crabline import Between
from tests.servers.discord import LocalDiscord
from tests.servers.feishu import Between as BetweenFeishu
from tests.servers.signal import PEOPLE as ON_SIGNAL
from tests.servers.signal import Between as BetweenSignal
from tests.servers.slack import Between as BetweenSlack
from tests.servers.whatsapp import PEOPLE as ON_WHATSAPP
from tests.servers.whatsapp import Between as BetweenWhatsApp


class Corner(Protocol):
    """A chat, its threads, and the people in it."""

    platform: str
    chat: str

    async def says(self, text: str, thread: str = "", who: str = "Ann") -> str:
        """Somebody writes; returns the message's id."""
        ...

    async def texts(self, thread: str = "") -> list[str]:
        """All that the agent has said there, but for placeholders that a crash left behind."""
        ...

    async def threads(self) -> list[str]:
        """The threads in which the agent has said something, the oldest first."""
        ...

    async def until(self, so: Callable[[], Awaitable[bool]], missing: Callable[[], Awaitable[str]]) -> None:
        """Wait until it is so; looks again whenever something happens there."""
        ...


async def thread_of(corner: Corner) -> str:
    """Wait for a thread in which the agent speaks; there may be only one."""

    async def is_there() -> bool:
        return bool(await corner.threads())

    async def missing() -> str:
        return f"no thread; {await corner.texts()!r}"

    await corner.until(is_there, missing)
    [thread] = await corner.threads()
    return thread


async def counts(corner: Corner, count: int, thread: str = "") -> list[str]:
    """Wait until the agent has said so many things there, and return them."""

    async def are_there() -> bool:
        return len(await corner.texts(thread)) >= count

    async def missing() -> str:
        return f"never {count}; there are {await corner.texts(thread)!r}"

    await corner.until(are_there, missing)
    return await corner.texts(thread)


async def shows(corner: Corner, texts: Iterable[str], thread: str = "") -> None:
    """Wait until the agent has said just this there, each once and in this order."""
    wanted = list(texts)

    async def are_there() -> bool:
        return await corner.texts(thread) == wanted

    async def missing() -> str:
        return f"{wanted!r} never; there are {await corner.texts(thread)!r}"

    await corner.until(are_there, missing)


class TelegramCorner:
    """A private chat with Ann, or a forum."""

    platform = "telegram"

    def __init__(self, between: Between, chat: str) -> None:
        self.chat = chat
        self.between = between
        self._people = {"Ann": 501, "Ben": 502}

    async def says(self, text: str, thread: str = "", who: str = "Ann") -> str:
        return await self.between.says(self.chat, text, self._people[who], thread)

    async def texts(self, thread: str = "") -> list[str]:
        read = self.between.read(Address("telegram", "bot", "", self.chat, thread))
        return [seen.text for seen in read if seen.text != PLACEHOLDER]

    async def threads(self) -> list[str]:
        sent = [body for method, body in self.between.calls if method == "sendMessage"]
        found = dict.fromkeys(
            body["message_thread_id"] for body in sent if body["chat_id"] == self.chat and "message_thread_id" in body
        )
        return [thread for thread in found if await self.texts(thread)]

    async def until(self, so: Callable[[], Awaitable[bool]], missing: Callable[[], Awaitable[str]]) -> None:
        await self.between.changes.until_so(so, missing)


class SlackCorner:
    """A private chat with Ann, or a channel."""

    platform = "slack"

    def __init__(self, between: BetweenSlack, chat: str) -> None:
        self.chat = chat
        self.between = between

    async def goes(self) -> None:
        """Slack is out of reach."""
        await self.between.cut()

    def comes(self) -> None:
        """Slack is there again."""
        self.between.down = False

    def beside(self, chat: str) -> "SlackCorner":
        """Another chat in the same workspace."""
        return SlackCorner(self.between, chat)

    async def says(self, text: str, thread: str = "", who: str = "Ann") -> str:
        return await self.between.says(self.chat, text, who, thread)

    async def texts(self, thread: str = "") -> list[str]:
        read = await self.between.read(Address("slack", "main", "", self.chat, thread))
        return [seen.text for seen in read if seen.text != PLACEHOLDER]

    async def threads(self) -> list[str]:
        sent = [fields for method, fields in self.between.calls if method == "chat.postMessage"]
        found = dict.fromkeys(one["thread_ts"] for one in sent if one["channel"] == self.chat and "thread_ts" in one)
        return [thread for thread in found if await self.texts(thread)]

    async def until(self, so: Callable[[], Awaitable[bool]], missing: Callable[[], Awaitable[str]]) -> None:
        await self.between.changes.until_so(so, missing)


class FeishuCorner:
    """A private chat with Ann, or a group."""

    platform = "feishu"

    def __init__(self, between: BetweenFeishu, chat: str) -> None:
        self.chat = chat
        self.between = between

    async def goes(self) -> None:
        """Feishu is out of reach."""
        await self.between.cut()

    def comes(self) -> None:
        """Feishu is there again."""
        self.between.down = False

    async def says(self, text: str, thread: str = "", who: str = "Ann") -> str:
        return await self.between.says(self.chat, text, who, thread)

    async def texts(self, thread: str = "") -> list[str]:
        read = self.between.read(Address("feishu", "main", "", self.chat, thread))
        return [seen.text for seen in read if seen.text != PLACEHOLDER]

    async def threads(self) -> list[str]:
        found = dict.fromkeys(said.root for said in self.between.said.values() if said.chat == self.chat and said.root)
        return [thread for thread in found if await self.texts(thread)]

    async def until(self, so: Callable[[], Awaitable[bool]], missing: Callable[[], Awaitable[str]]) -> None:
        await self.between.changes.until_so(so, missing)


class MatrixCorner:
    """A room; Ann reads in it."""

    platform = "matrix"

    def __init__(self, agent: User, chat: str, people: dict[str, User]) -> None:
        self.chat = chat
        self.agent = agent
        self.people = people

    async def says(self, text: str, thread: str = "", who: str = "Ann") -> str:
        return await self.people[who].says(self.chat, text, thread)

    async def texts(self, thread: str = "") -> list[str]:
        read = await self.people["Ann"].sees(self.chat, self.agent.id, thread)
        return [seen.text for seen in read if seen.text != PLACEHOLDER]

    async def threads(self) -> list[str]:
        relations = [
            event["content"].get("m.relates_to", {})
            for event in await self.people["Ann"].timeline(self.chat)
            if event["sender"] == self.agent.id
        ]
        return list(dict.fromkeys(one["event_id"] for one in relations if one.get("rel_type") == "m.thread"))

    async def until(self, so: Callable[[], Awaitable[bool]], missing: Callable[[], Awaitable[str]]) -> None:
        ann, since = self.people["Ann"], ""
        chosen = json.dumps({"room": {"rooms": [self.chat], "ephemeral": {"not_types": ["*"]}}})
        try:
            async with asyncio.timeout(_PATIENCE):
                while True:
                    query = {"filter": chosen, "timeout": "10000" if since else "0"}
                    answer = await ann.call("GET", "/sync", query=query | ({"since": since} if since else {}))
                    since = str(answer["next_batch"])
                    if await so():
                        return
        except TimeoutError:
            raise AssertionError(await missing()) from None


class DiscordCorner:
    """A channel, or a private chat with Ann."""

    platform = "discord"

    def __init__(self, town: LocalDiscord, chat: str) -> None:
        self.chat = chat
        self.town = town

    @property
    def private(self) -> "DiscordCorner":
        """Ann's private chat with the agent."""
        return DiscordCorner(self.town, self.town.private("Ann"))

    async def says(self, text: str, thread: str = "", who: str = "Ann") -> str:
        return self.town.says(thread or self.chat, text, who)

    async def texts(self, thread: str = "") -> list[str]:
        read = [shown(message.content) for message in self.town.seen(thread or self.chat)]
        return [text for text in read if text != PLACEHOLDER]

    async def threads(self) -> list[str]:
        found = [str(one.id) for one in self.town.backend.channels.values() if str(one.parent_id) == self.chat]
        return [thread for thread in found if await self.texts(thread)]

    async def goes(self) -> None:
        """Nobody reaches Discord any more, and it forgets the gateway's session."""
        await self.town.cut()
        self.town.forget()

    def comes(self) -> None:
        """Discord is there again."""
        self.town.away = False

    async def joined(self) -> None:
        """Wait until the agent listens: what is said from now on is for it."""
        await self.town.changes.until(lambda: self.town.identified or None, lambda: "it never connected")

    async def until(self, so: Callable[[], Awaitable[bool]], missing: Callable[[], Awaitable[str]]) -> None:
        await self.town.changes.until_so(so, missing)


class WhatsAppCorner:
    """A private chat with Ann, which has no threads."""

    platform = "whatsapp"

    def __init__(self, between: BetweenWhatsApp) -> None:
        self.chat = ON_WHATSAPP["Ann"].number
        self.between = between

    async def says(self, text: str, thread: str = "", who: str = "Ann") -> str:
        assert not thread, "there are none"
        return await self.between.says(self.chat, text, who)

    async def texts(self, thread: str = "") -> list[str]:
        return [seen.text for seen in self.between.read(Address("whatsapp", "main", "", self.chat, thread))]

    async def threads(self) -> list[str]:
        return []

    async def goes(self) -> None:
        """Nobody reaches WhatsApp, and it reaches nobody."""
        self.between.down = True

    def comes(self) -> None:
        """WhatsApp is there again."""
        self.between.down = False

    async def until(self, so: Callable[[], Awaitable[bool]], missing: Callable[[], Awaitable[str]]) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                while not await so():
                    await self.between.changes.next()
        except TimeoutError:
            raise AssertionError(await missing()) from None


class SignalCorner:
    """A private chat with Ann, or a group: flat, either of them."""

    platform = "signal"

    def __init__(self, between: BetweenSignal, chat: str) -> None:
        self.chat = chat
        self.between = between

    @property
    def club(self) -> "SignalCorner":
        """A new group."""
        return SignalCorner(self.between, self.between.group())

    async def goes(self) -> None:
        """The daemon is out of reach."""
        await self.between.cut()

    def comes(self) -> None:
        """The daemon is there again."""
        self.between.down = False

    async def says(self, text: str, thread: str = "", who: str = "Ann") -> str:
        assert not thread, "there are no threads on Signal"
        private = self.chat == ON_SIGNAL["Ann"].uuid
        return await self.between.says(text, who, "" if private else self.chat)

    async def texts(self, thread: str = "") -> list[str]:
        """All that the agent has said; what a crash made it say again, it says so, and that counts once."""
        said: list[str] = []
        known: list[list[str]] = []
        for text in () if thread else self.between.texts(self.chat):
            # Behind the words that say so, a list is none any more.
            words = text.removeprefix(MAYBE).split()
            if not text.startswith(MAYBE) or words not in known:
                said.append(text)
                known.append(words)
        return said

    async def threads(self) -> list[str]:
        return []

    async def until(self, so: Callable[[], Awaitable[bool]], missing: Callable[[], Awaitable[str]]) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                while not await so():
                    await self.between.changes.next()
        except TimeoutError:
            raise AssertionError(await missing()) from None


_PATIENCE = 120.0
"""Seconds until a test is told what never came; no test that passes waits for them."""
