"""What its author deletes on the platform: withdrawn while it waits, hidden later, shown again by /undo."""

import pytest

from segue.core.messages import plain_text
from segue.core.transcripts import Role
from segue.testing import Matrix, Pause, ScriptedAgent, Signal, To
from tests.stories.square import Square

told = pytest.mark.parametrize("square", [(Signal, "sqlite"), (Matrix, "postgres")], indirect=True)
"""Where the platform tells of deletions, on either database."""


def known(square: Square) -> list[str]:
    """The words that the agent was given with the last question."""
    said = (entry for entry in square.works[-1].transcript if entry.author.role is not Role.GATEWAY)
    return [plain_text(entry.parts) for entry in said]


@told
async def test_what_was_said_is_hidden_from_prompts_and_search_and_comes_back_by_undo(square: Square) -> None:
    square.agent = ScriptedAgent(otherwise=lambda _: ["noted"])
    async with square.open():
        await square.says("the cats are hungry")
        await square.says("and the dogs sleep")
        await square.store.index()
        assert "hungry" in await square.says("/search hungry")
        square.passes(1)
        square.ann.deletes(square.message("the cats are hungry"))
        await square.platform.settles()
        assert "Nothing found" in await square.says("/search hungry")
        await square.says("what do you know?")
        assert known(square) == ["", "noted", "and the dogs sleep", "noted"]
        square.passes(1)
        square.ann.deletes(square.message("and the dogs sleep"))
        await square.platform.settles()
        assert await square.says("/undo") == "What you deleted counts again."
        await square.says("and now?")
        assert known(square)[:4] == ["", "noted", "and the dogs sleep", "noted"]
        assert "Took back the last exchange" in await square.says("/undo")


@told
async def test_nobody_hides_what_somebody_else_said(square: Square) -> None:
    lobby, bob = square.platform.group("lobby"), square.platform.person("Bob")
    square.agent = ScriptedAgent(otherwise=lambda _: ["noted"])
    async with square.open():
        await square.says("hello", who=bob, where=lobby)
        await square.says("the cats are hungry", where=lobby)
        bob.deletes(square.message("the cats are hungry", lobby))
        await square.platform.settles()
        await square.says("what do you know?", where=lobby)
        assert known(square) == ["the cats are hungry", "noted"]


@told
async def test_what_is_deleted_while_it_is_answered_is_hidden_afterwards(square: Square) -> None:
    pause = Pause()
    square.agent = ScriptedAgent([pause, "noted"], otherwise=lambda _: ["noted"])
    async with square.open():
        square.ann.says("the cats are hungry", square.dm, to=To.AGENT)
        await pause.reached()
        square.ann.deletes(square.message("the cats are hungry"))
        await square.platform.settles()
        pause.over()
        await square.hears(square.dm, 1)
        await square.says("what do you know?")
        assert known(square) == ["", "noted"]


@told
async def test_what_is_deleted_while_something_else_is_answered_is_hidden_from_then_on(square: Square) -> None:
    pause = Pause()
    square.agent = ScriptedAgent("noted", [pause, "noted"], otherwise=lambda _: ["noted"])
    async with square.open():
        await square.says("the cats are hungry")
        square.ann.says("and the dogs sleep", square.dm, to=To.AGENT)
        await pause.reached()
        square.ann.deletes(square.message("the cats are hungry"))
        await square.platform.settles()
        pause.over()
        await square.hears(square.dm, 2)
        for _ in range(2):
            await square.says("what do you know?")
            assert known(square)[:4] == ["", "noted", "and the dogs sleep", "noted"]


@told
async def test_what_still_waits_is_withdrawn(square: Square) -> None:
    pause = Pause()
    square.agent = ScriptedAgent([pause, "at last"], otherwise=lambda _: ["noted"])
    async with square.open():
        square.ann.says("take your time", square.dm, to=To.AGENT)
        await pause.reached()
        square.ann.says("the cats are hungry", square.dm, to=To.AGENT)
        square.ann.deletes(square.message("the cats are hungry"))
        await square.platform.settles()
        pause.over()
        await square.hears(square.dm, 1)
        await square.says("what do you know?")
        assert known(square) == ["take your time", "at last"]
        assert square.dm.replies == ["at last", "noted"]
