"""A harness that lets the contracts speak on simcord's Discord."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from segue.adapters.discord import Discord
from segue.core.contracts.adapters import Accept, Adapter
from segue.core.lanes import Address, Kind
from segue.core.values import Secret
from segue.testing import Shelf
from segue.testing.harness import Bookmark, Given, Seen, living
from tests.servers.discord import TOKEN, LocalDiscord

_ESCAPED = re.compile(r"\\([^0-9A-Za-z\s])")


def shown(text: str) -> str:
    """A text as Discord shows it, but for its marks."""
    return _ESCAPED.sub(r"\1", text)


class DiscordHarness:
    """People, channels and private chats of one guild."""

    kinds = (Kind.DM, Kind.GROUP)

    def __init__(self, town: LocalDiscord) -> None:
        self.town = town
        self.shelf = Shelf()
        self.adapters: list[Discord] = []
        self.cursor = Bookmark()
        self._cleared: dict[str, int] = {}

    def adapter(self) -> Discord:
        adapter = Discord("bot", Secret(TOKEN), self.shelf, self.town.url)
        self.adapters.append(adapter)
        return adapter

    async def close(self) -> None:
        for adapter in self.adapters:
            await adapter.close()

    @asynccontextmanager
    async def deliver(self, adapter: Adapter, accept: Accept) -> AsyncIterator[None]:
        given = Given(accept, self.cursor)
        async with living(adapter, given):
            await given.is_well()
            yield

    async def chat(self, kind: Kind, who: str = "Ann") -> Address:
        if kind is Kind.DM:
            chat = self.town.private(who)
            # There is one private chat with each person: what stood in it before is none of the test's.
            self._cleared[chat] = max(self.town.backend.messages[int(chat)], default=0)
            return Address("discord", "bot", "", chat)
        return Address("discord", "bot", str(self.town.guild.id), self.town.channel())

    async def say(self, at: Address, text: str, who: str = "Ann") -> str:
        return self.town.says(at.chat, text, who)

    async def attach(self, at: Address, name: str, content: bytes, who: str = "Ann") -> str:
        stored = self.town.backend.store_attachments(int(at.chat), [(name, content)])
        return self.town.says(at.chat, "", who, attachments=stored)

    async def change(self, at: Address, message: str, text: str, who: str = "Ann") -> None:
        self.town.backend.edit_message(int(at.chat), int(message), {"content": text})

    async def delete(self, at: Address, message: str, who: str = "Ann") -> None:
        self.town.backend.delete_message(int(at.chat), int(message))

    async def quote(self, at: Address, message: str, text: str, who: str = "Ann") -> str:
        return self.town.answers(at.chat, message, text, who)

    async def read(self, at: Address) -> list[Seen]:
        cleared = self._cleared.get(at.chat, 0)
        return [Seen(str(one.id), shown(one.content)) for one in self.town.seen(at.chat) if one.id > cleared]

    async def redeliver(self) -> None:
        self.town.tell_again()

    async def garble(self) -> None:
        self.town.garble()

    async def nowhere(self) -> Address:
        return Address("discord", "bot", str(self.town.guild.id), "1")
