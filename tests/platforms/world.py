"""Platforms by servers of others (Synapse, crabline, local-slack, simcord), a terminal, and one gateway to kill."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from enum import StrEnum
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from urllib.parse import quote

from segue.core.contracts.probes import Point
from segue.core.prompt.envelopes import read
from segue.core.transcripts import Role
from tests.adapters.matrix import User
from tests.forge import kill
from tests.platforms.corners import (
    Corner,
    DiscordCorner,
    FeishuCorner,
    MatrixCorner,
    SignalCorner,
    SlackCorner,
    TelegramCorner,
    WhatsAppCorner,
)
from tests.platforms.gateways import LOG, WIRE, Plan, die_at, start
from tests.platforms.windows import is_open
from tests.ports import free_port
from tests.servers import feishu as lark
from tests.servers.crabline import TOKEN, telegram
from tests.servers.discord import TOKEN as DISCORD_TOKEN
from tests.servers.discord import LocalDiscord, local_discord
from tests.servers.homeserver import NAME, Synapse
from tests.servers.signal import NUMBER
from tests.servers.signal import PEOPLE as ON_SIGNAL
from tests.servers.signal import Between as BetweenSignal
from tests.servers.signal import signal as signal_cli
from tests.servers.slack import APP_TOKEN, PEOPLE, SIGNING, slack
from tests.servers.slack import TOKEN as SLACK_TOKEN
from tests.servers.whatsapp import APP_SECRET, VERIFY, whatsapp
from tests.servers.whatsapp import NUMBER as WHATSAPP_NUMBER
from tests.servers.whatsapp import TOKEN as WHATSAPP_TOKEN

SETTINGS = """
owners = []

[replica]
lease = {lease}
poll = 0.2
grace = 0
{store}
"""
TELEGRAM = """
[telegram.bot]
token = "file:telegram-token"
api = "{url}"
webhook = "{webhook}"
public = true
home = {{ chat = "501", kind = "dm" }}
"""
MATRIX = """
[matrix.main]
homeserver = "{url}"
user = "{bot}"
token = "file:matrix-token"
public = true
rate = 1000
burst = 10000
home = {{ chat = "{room}", kind = "dm", space = "{space}" }}
"""
SLACK = """
[slack.main]
token = "file:slack-token"
{way} = "file:slack-secret"
api = "{url}"
public = true
home = {{ chat = "{chat}", kind = "dm" }}
"""
DISCORD = """
[discord.bot]
token = "file:discord-token"
api = "{url}"
public = true
home = {{ chat = "{channel}", kind = "group", space = "{guild}" }}
"""
FEISHU = """
[feishu.main]
app_id = "{app}"
app_secret = "file:feishu-secret"
{way}
api = "{url}"
public = true
home = {{ chat = "{chat}", kind = "dm" }}
"""
WHATSAPP = """
[whatsapp.main]
number = "{number}"
token = "file:whatsapp-token"
app_secret = "file:whatsapp-secret"
verify_token = "file:whatsapp-word"
api = "{url}"
public = true
home = {{ chat = "{chat}", kind = "dm" }}
"""
SIGNAL = """
[signal.main]
number = "{number}"
daemon = "{url}"
public = true
home = {{ chat = "{chat}", kind = "dm" }}
"""
_PATIENCE = 120.0


class Way(StrEnum):
    """How a gateway is run, where that may matter to a story."""

    POLLING = "polling"
    """It polls for what Telegram has to tell, and remembers in a file."""
    WEBHOOK = "webhook"
    """Telegram calls it."""
    POSTGRES = "postgres"
    """It remembers in PostgreSQL."""


class World:
    """Everything that one story happens in."""

    def __init__(self, plan: Plan) -> None:
        self.home = Path(plan.home)
        self.on_telegram: TelegramCorner | None = None
        self.on_matrix: MatrixCorner | None = None
        self.slack: SlackCorner | None = None
        self.feishu: FeishuCorner | None = None
        self.discord: DiscordCorner | None = None
        """A channel, in a story that needs one."""
        self.whatsapp: WhatsAppCorner | None = None
        self.signal: SignalCorner | None = None
        self._plan = plan
        self._process: BaseProcess | None = None

    @property
    def telegram(self) -> TelegramCorner:
        """Ann's private chat with the bot."""
        assert self.on_telegram is not None, "this world has no Telegram"
        return self.on_telegram

    @property
    def matrix(self) -> MatrixCorner:
        """Ann's private room with the agent."""
        assert self.on_matrix is not None, "this world has no Matrix"
        return self.on_matrix

    @property
    def people(self) -> dict[str, User]:
        """Who is on Matrix."""
        return self.matrix.people

    async def start(self) -> None:
        """Run a gateway, until it takes messages in."""
        process = self._process = await asyncio.to_thread(start, self._plan)
        async with asyncio.timeout(_PATIENCE):
            while not await is_open(self.home):
                assert process.is_alive(), f"it ended: {(self.home / LOG).read_text()}"
                await asyncio.sleep(0.02)

    async def listens(self) -> None:
        """Wait until the agent listens where it would miss what is said before."""
        if self.on_matrix is not None:
            await self.joined(self.on_matrix)
        if self.slack is not None:
            await self.slack.between.listened()
        if self.discord is not None:
            await self.discord.joined()
        if self.signal is not None:
            await self.signal.between.listened()

    async def kill(self) -> None:
        """End the gateway as a power cut would."""
        process, self._process = self._process, None
        if process is not None:
            await asyncio.to_thread(kill, process)
        if self.signal is not None:
            # What the daemon tells somebody who is dead is lost: it hears of that from their socket.
            await self.signal.between.left()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let the gateway stand still, as a laptop does that sleeps."""
        assert self._process is not None
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)

    def dies_at(self, point: Point, times: int = 1) -> None:
        """The gateway will kill itself there, the so-manieth time that it comes there from now on."""
        die_at(self.home, point, times)

    async def rises(self) -> None:
        """Wait until the gateway is dead, and run another one."""
        assert self._process is not None
        await asyncio.to_thread(self._process.join, _PATIENCE)
        assert self._process.exitcode is not None, "it never came to that label"
        self._process = None
        await self.start()

    def home_on(self, platform: str) -> Corner:
        """Ann's private chat there; on Discord, where such a chat has no threads, a channel."""
        if platform == "slack":
            assert self.slack is not None, "this world has no Slack"
            return self.slack
        if platform == FeishuCorner.platform:
            assert self.feishu is not None, "this world has no Feishu"
            return self.feishu
        if platform == DiscordCorner.platform:
            assert self.discord is not None, "this world has no Discord"
            return self.discord
        if platform == WhatsAppCorner.platform:
            assert self.whatsapp is not None, "this world has no WhatsApp"
            return self.whatsapp
        if platform == SignalCorner.platform:
            assert self.signal is not None, "this world has no Signal"
            return self.signal
        return self.telegram if platform == TelegramCorner.platform else self.matrix

    async def room(self, *others: str) -> MatrixCorner:
        """A new room of Ann's, with others and the agent, who has followed the invitation."""
        ann = self.people["Ann"]
        room = await ann.make_room(self.matrix.agent, *(self.people[name] for name in others))
        for name in others:
            await self.people[name].join(room)
        corner = MatrixCorner(self.matrix.agent, room, self.people)
        await self.joined(corner)
        return corner

    async def forum(self) -> TelegramCorner:
        """A new group with topics."""
        between = self.telegram.between
        return TelegramCorner(between, await between.forum())

    def channel(self) -> SlackCorner:
        """A channel on Slack with Ann, Ben and the agent."""
        assert self.slack is not None, "this world has no Slack"
        return self.slack.beside("C0001")

    async def joined(self, corner: MatrixCorner) -> None:
        """Wait until the agent is in a room: what is said from now on is for it."""

        async def is_there() -> bool:
            members = await self.people["Ann"].call("GET", f"/rooms/{quote(corner.chat)}/joined_members")
            return self.matrix.agent.id in members["joined"]

        async def missing() -> str:
            return f"it never followed the invitation: {(self.home / LOG).read_text()}"

        await corner.until(is_there, missing)

    @property
    def wire(self) -> list[dict[str, Any]]:
        """What the agent was given, a turn each."""
        return [json.loads(line) for line in (self.home / WIRE).read_text().splitlines()]

    @property
    def last(self) -> list[str]:
        """The whole conversation of the agent's last turn, but for what the gateway told it."""
        return [_text(words) for role, words in self.wire[-1]["said"] if words and role != Role.GATEWAY]


def _text(words: str) -> str:
    return read(words).text if words.startswith('{"author"') else words


@asynccontextmanager
async def world(
    folder: Path,
    synapse: Synapse | None,
    lease: float = 1.0,
    way: Way = Way.POLLING,
    dsn: str = "",
    platforms: Collection[str] = (TelegramCorner.platform,),
) -> AsyncIterator[World]:
    """A world of some platforms whose gateway runs, and Matrix with them if there is a homeserver.

    Ann is the host, the homes are her private chats.
    """
    home = folder / "home"
    home.mkdir(mode=0o700)
    plan = Plan(str(home), free_port())
    webhook = f"http://127.0.0.1:{plan.port}" if way is Way.WEBHOOK else ""
    store = f'[store]\nurl = "{dsn}"' if way is Way.POSTGRES else ""
    async with AsyncExitStack() as stack:
        (home / "segue.toml").write_text(SETTINGS.format(store=store, lease=lease))
        (home / WIRE).touch()
        made = World(plan)
        if TelegramCorner.platform in platforms:
            made.on_telegram = await _telegram(home, stack, folder, webhook)
        if synapse is not None:
            made.on_matrix = await _matrix(home, stack, synapse)
        if SlackCorner.platform in platforms:
            made.slack = await _slack(home, stack, webhook)
        if FeishuCorner.platform in platforms:
            made.feishu = await _feishu(home, stack, folder, webhook)
        if DiscordCorner.platform in platforms:
            made.discord = _discord(home, await stack.enter_async_context(local_discord()))
        if WhatsAppCorner.platform in platforms:
            made.whatsapp = await _whatsapp(home, folder, stack, plan.port)
        if SignalCorner.platform in platforms:
            made.signal = _signal(home, *await stack.enter_async_context(signal_cli(folder)))
        try:
            await made.start()
            await made.listens()
            yield made
        finally:
            await made.kill()


async def _telegram(home: Path, stack: AsyncExitStack, folder: Path, webhook: str) -> TelegramCorner:
    """Telegram, which the gateway polls, or which calls it."""
    between, url = await stack.enter_async_context(telegram(folder))
    between.url = url if webhook else ""
    _add(home, TELEGRAM.format(url=url, webhook=webhook), "telegram.bot/501")
    (home / "telegram-token").write_text(TOKEN)
    return TelegramCorner(between, "501")


async def _matrix(home: Path, stack: AsyncExitStack, synapse: Synapse) -> MatrixCorner:
    """Matrix, with people of this world alone."""
    bot, *others = [await User.register(synapse, name) for name in ("Segue", "Ann", "Ben")]
    for user in (bot, *others):
        stack.push_async_callback(user.client.aclose)
    people = dict(zip(("Ann", "Ben"), others, strict=True))
    room = await people["Ann"].make_room(bot, is_direct=True)
    said = {"url": synapse.url, "bot": bot.id, "room": room, "space": NAME}
    _add(home, MATRIX.format(**said), f"matrix.main/{people['Ann'].id}")
    (home / "matrix-token").write_text(bot.token)
    return MatrixCorner(bot, room, people)


async def _slack(home: Path, stack: AsyncExitStack, webhook: str) -> SlackCorner:
    """Slack beside the others: by its socket, or calling as the others do."""
    between, url = await stack.enter_async_context(slack(calls=bool(webhook)))
    between.webhook = f"{webhook}/in/slack/main" if webhook else ""
    chat = await between.private("Ann")
    said = {"way": "signing_secret" if webhook else "app_token", "url": url, "chat": chat}
    _add(home, SLACK.format(**said), f"slack.main/{PEOPLE['Ann']}")
    (home / "slack-token").write_text(SLACK_TOKEN)
    (home / "slack-secret").write_text(SIGNING if webhook else APP_TOKEN)
    return SlackCorner(between, chat)


async def _feishu(home: Path, stack: AsyncExitStack, folder: Path, webhook: str) -> FeishuCorner:
    """Feishu beside the others: by its long connection, or calling as the others do."""
    between, url = await stack.enter_async_context(lark.feishu(folder, calls=bool(webhook)))
    between.webhook = f"{webhook}/in/feishu/main" if webhook else ""
    chat = between.private("Ann")
    way = 'verification_token = "file:feishu-token"\nencrypt_key = "file:feishu-key"' if webhook else ""
    _add(home, FEISHU.format(app=lark.APP, way=way, url=url, chat=chat), f"feishu.main/{lark.PEOPLE['Ann']}")
    for name, secret in (("secret", lark.SECRET), ("token", lark.TOKEN), ("key", lark.KEY)):
        (home / f"feishu-{name}").write_text(secret)
    return FeishuCorner(between, chat)


def _discord(home: Path, club: LocalDiscord) -> DiscordCorner:
    """Discord beside the others; its home is a new channel."""
    corner = DiscordCorner(club, club.channel())
    keys = DISCORD.format(url=club.url, channel=corner.chat, guild=club.guild.id)
    _add(home, keys, f"discord.bot/{club.people['Ann'].id}")
    (home / "discord-token").write_text(DISCORD_TOKEN)
    return corner


async def _whatsapp(home: Path, folder: Path, stack: AsyncExitStack, port: int) -> WhatsAppCorner:
    """WhatsApp beside the others; it calls, however the others are heard."""
    between, url = await stack.enter_async_context(whatsapp(folder))
    between.webhook = f"http://127.0.0.1:{port}/in/whatsapp/main"
    corner = WhatsAppCorner(between)
    _add(home, WHATSAPP.format(number=WHATSAPP_NUMBER, url=url, chat=corner.chat), f"whatsapp.main/{corner.chat}")
    for name, secret in (("token", WHATSAPP_TOKEN), ("secret", APP_SECRET), ("word", VERIFY)):
        (home / f"whatsapp-{name}").write_text(secret)
    return corner


def _signal(home: Path, between: BetweenSignal, url: str) -> SignalCorner:
    """Signal beside the others."""
    chat = ON_SIGNAL["Ann"].uuid
    _add(home, SIGNAL.format(number=NUMBER, url=url, chat=chat), f"signal.main/{chat}")
    return SignalCorner(between, chat)


def _add(home: Path, table: str, owner: str) -> None:
    """Write one more account into the settings, and who of its people is the host."""
    settings = home / "segue.toml"
    settings.write_text(settings.read_text().replace("owners = [", f'owners = ["{owner}", ', 1) + table)
