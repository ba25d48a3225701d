"""Conversations on Discord, end to end: a real gateway, discord.py, and simcord's Discord behind real sockets."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from segue.adapters.discord import Discord
from segue.agents.given import as_agent
from segue.core.contracts.agents import Agent, Work
from segue.core.contracts.probes import Point, Probe
from segue.core.lanes import Identity
from segue.core.messages import plain_text
from segue.core.settings import AccountSettings, Mentions
from segue.core.values import Secret
from segue.database.transactions import unheeded
from segue.runtime.gateway import Gateway
from segue.testing import EchoAgent, Pause, ScriptedAgent, Shelf
from tests.adapters.discord import shown
from tests.in_process import gateway_on
from tests.served import Served
from tests.servers.discord import TOKEN, LocalDiscord, local_discord

EVERYBODY = AccountSettings(public=True)


@pytest.fixture
async def town() -> AsyncIterator[LocalDiscord]:
    async with local_discord() as town:
        yield town


@asynccontextmanager
async def running(
    path: Path,
    town: LocalDiscord,
    agent: Agent,
    account: AccountSettings = EVERYBODY,
    probe: Probe = unheeded,
) -> AsyncIterator[Gateway]:
    """A gateway on Discord alone, connected; Ann is its host."""
    adapter = Discord("bot", Secret(TOKEN), Shelf(), town.url)
    hosts = (Identity("discord", "bot", str(town.people["Ann"].id)),)
    more: Any = {"account": account, "hosts": hosts, "probe": probe, "grace": 0.1}
    connected = town.identified + town.resumed
    async with gateway_on(path, agent, adapter, **more) as gateway:
        await until(town, lambda: town.identified + town.resumed > connected)
        yield gateway
    await adapter.close()


async def until(town: LocalDiscord, so: Callable[[], bool]) -> None:
    await town.changes.until(lambda: so() or None, lambda: f"never; {town.backend.transcript[-5:]!r}")


def texts(town: LocalDiscord, channel: str, who: str = "") -> list[str]:
    return [shown(one.content) for one in town.seen(channel, who)]


async def shows(town: LocalDiscord, channel: str, *wanted: str, who: str = "") -> None:
    """Wait until the bot has said just this there."""
    await town.changes.until(
        lambda: texts(town, channel, who) == list(wanted) or None,
        lambda: f"{wanted!r} never; there are {texts(town, channel, who)!r}",
    )


async def test_what_is_said_is_answered_and_the_menu_is_there(town: LocalDiscord, tmp_path: Path) -> None:
    async with running(tmp_path, town, EchoAgent()) as gateway:
        chat = town.private()
        town.says(chat, "hello @everyone")
        await shows(town, chat, "hello @everyone")
        await until(town, lambda: bool(town.backend.commands.get(None)))
        known = {spec.name for spec in gateway.commands}
    assert {command["name"] for command in town.backend.commands[None].values()} == known
    [message] = town.seen(chat)
    assert not message.mention_everyone, "everybody would be called"
    assert message.allowed_mentions.users == frozenset()
