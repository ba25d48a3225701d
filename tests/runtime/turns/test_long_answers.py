"""Answers of many pieces: what one agent says costs others nothing, and is told for what it is worth."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from segue.core.contracts.agents import Event, Work
from segue.core.lanes import Lane
from segue.core.messages import Delivery, Text, ToolCall, plain_text
from segue.core.settings import AccountSettings, Streams
from segue.core.values import SessionId
from segue.runtime.turns import streaming
from segue.runtime.turns.running import Said
from segue.runtime.windows.watchers import Growing, Sight, Watches
from segue.testing.agents import Pause, ScriptedAgent
from tests.drills.room import Wall, said, settings
from tests.in_process import gateway_on

PIECES = 20_000
PIECE = "nine word "


def too_much(pieces: int) -> int:
    """Characters: far more than pieces take, far fewer than if each took all that was said before it."""
    return len(PIECE) * pieces * pieces // 100


class Counted(str):
    """A piece that counts what is copied to put it to others."""

    __slots__ = ()
    copied = 0

    def __radd__(self, before: str) -> str:
        Counted.copied += len(before)
        return str.__add__(before, self)


def test_a_piece_costs_nothing_of_what_was_said_before() -> None:
    answer = Said(())
    for _ in range(PIECES):
        answer.add(Text(Counted(PIECE)))
    answer.add(ToolCall("c", "look", {}))
    answer.add(Text("And "))
    assert answer.parts[2:] == [Text("And ")]
    answer.add(Text("so on."))
    assert answer.parts == [Text(PIECE * PIECES), ToolCall("c", "look", {}), Text("And so on.")]
    assert Counted.copied < too_much(PIECES)


class Talker:
    """An agent that says very much and never waits: until it is asked for a word meanwhile, or talked for long."""

    def __init__(self) -> None:
        self.pieces = 0
        self.in_time = False
        """Whether it was asked for the word while it talked."""
        self.begun, self.asked = asyncio.Event(), asyncio.Event()

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        if plain_text(work.asked[0].parts) == "a word":
            self.asked.set()
            yield Text("A word.")
            return
        self.begun.set()
        end = time.monotonic() + 80.0
        while self.pieces < PIECES or (not self.asked.is_set() and time.monotonic() < end):
            self.pieces += 1
            yield Text(PIECE)
        self.in_time = self.asked.is_set()


def words(wall: Wall, message: str) -> list[str]:
    """What was sent in answer to a message."""
    return " ".join(post.text for post in wall.answers(message)).split()


async def test_one_who_talks_without_end_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: asyncio.Queue[str] = asyncio.Queue()
    wall, agent, told = Wall(lambda _what, key: sent.put_nowait(key)), Talker(), 0
    tell = Watches.tell

    def counted(watches: Watches, what: SessionId | Lane, sight: Sight) -> None:
        nonlocal told
        told += len(sight.text) if isinstance(sight, Growing) else 0
        tell(watches, what, sight)

    monkeypatch.setattr(Watches, "tell", counted)
    async with (
        gateway_on(tmp_path, agent, wall, settings=settings()) as gateway,
        asyncio.timeout(120),
    ):
        await gateway.accept(said("talk", "m-1", "everything"))
        await agent.begun.wait()
        await gateway.accept(said("other", "m-2", "a word"))
        while len(words(wall, "m-1")) < 2 * agent.pieces or not words(wall, "m-2"):
            await sent.get()
    assert agent.in_time
    assert words(wall, "m-1") == (PIECE * agent.pieces).split()
    assert 0 < told < too_much(agent.pieces)


class Board(Wall):
    """A platform on which messages can be changed, and short ones only."""

    def __init__(self) -> None:
        super().__init__(lambda *_: None)
        self.edits: asyncio.Queue[str] = asyncio.Queue()
        self.looked_at: asyncio.Queue[str] = asyncio.Queue()

    def fits(self, text: str) -> bool:
        self.looked_at.put_nowait(text)
        return len(text) <= 40

    async def looks_at(self, words: str) -> None:
        """Wait until a text with these words may be shown; what came before it has been."""
        while words not in await self.looked_at.get():
            """Not this one."""

    async def edit(self, delivery: Delivery) -> None:
        self.edits.put_nowait(delivery.text)


async def test_a_message_that_is_full_is_changed_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "_PACE", 0.01)
    board, pauses = Board(), [Pause(), Pause(), Pause()]
    agent = ScriptedAgent(["One.", pauses[0], "\n\n" + "two " * 9, pauses[1], "\n\nThree.", pauses[2]])
    account = AccountSettings(public=True, streams=Streams.LIVE)
    async with (
        gateway_on(tmp_path, agent, board, account=account) as gateway,
        asyncio.timeout(90),
    ):
        await gateway.accept(said("talk", "m-1"))
        assert await board.edits.get() == "One."
        pauses[0].over()
        await pauses[1].reached()
        await board.looks_at("two")
        pauses[1].over()
        await pauses[2].reached()
        await board.looks_at("Three.")
        assert board.edits.empty()
