"""What an editor is told of a conversation, whatever order a window's frames come in."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from acp import RequestError, text_block

from segue.changes.exchange.traces import TurnState
from segue.core.messages import File, Text
from segue.core.transcripts import Role, Tip
from segue.core.values import SessionId
from segue.errors import Overloaded
from segue.runtime.editors.conversation import Conversation
from segue.runtime.windows.frames import (
    AnsweredFrame,
    Asked,
    EntriesFrame,
    GrowthFrame,
    NoticeFrame,
    QuestionsFrame,
    Shown,
    ShownEntry,
    ShownQuestion,
    ShownSession,
    ShownTurn,
    TranscriptFrame,
    WaitingFrame,
)
from segue.testing.waits import PATIENCE

HERE = SessionId("01m7n000000000000000000000")


class Told:
    """A window that tells some frames and then nothing, and the editor that is told of them."""

    def __init__(self, frames: Sequence[Shown]) -> None:
        self._frames = frames
        self.updates: list[tuple[str, str]] = []
        self.all = asyncio.Event()

    async def frames(self) -> AsyncIterator[Shown]:
        for frame in self._frames:
            yield frame
        self.all.set()
        await asyncio.Event().wait()

    async def ask(self, request: Asked) -> None: ...

    async def again(self, session: SessionId | None) -> None: ...

    async def close(self) -> None: ...

    def locate(self, file: File) -> str:
        return file.name

    async def session_update(self, _session: str, update: Any) -> None:
        self.updates.append((update.session_update, update.content.text))


async def is_told(told: Told) -> None:
    """The editor hears of all that the window tells."""
    editor: Any = told
    conversation = Conversation(HERE, told, editor)
    async with asyncio.timeout(90):
        await told.all.wait()
    await conversation.close()


async def test_an_answer_is_shown_behind_what_it_answers_though_it_is_told_first() -> None:
    turn = ShownTurn("m1", "Ann", "and cake", 0.0, mine=True)
    told = Told(
        [
            TranscriptFrame(ShownSession(HERE, ""), ()),
            GrowthFrame(1, 0, (Text("and "),), answers=("m1",)),
            WaitingFrame((turn,)),
            GrowthFrame(1, 0, (Text("cake"),), more=True, answers=("m1",)),
        ]
    )
    await is_told(told)
    assert told.updates == [("user_message_chunk", "and cake"), ("agent_message_chunk", "and cake")]


GROWS = (
    TranscriptFrame(ShownSession(HERE, ""), ()),
    WaitingFrame((ShownTurn("m1", "Ann", "two words", 0.0, mine=True),)),
    GrowthFrame(1, 0, (Text("wo"),), answers=("m1",)),
    NoticeFrame("(A child is done.)"),
)
NOTICE = ("agent_message_chunk", "\n\n(A child is done.)\n\n")


async def test_a_notice_waits_until_the_answer_that_grows_is_whole() -> None:
    whole = ShownEntry(Tip(HERE, 2), Role.AGENT, "", "word two", 0.0, parts=(Text("word two"),))
    more = GrowthFrame(1, 0, (Text("rd"),), more=True, answers=("m1",))
    told = Told([*GROWS, more, EntriesFrame(ShownSession(HERE, ""), (whole,))])
    await is_told(told)
    words = [("agent_message_chunk", text) for text in ("wo", "rd", " two")]
    assert told.updates == [("user_message_chunk", "two words"), *words, NOTICE]


@pytest.mark.parametrize(
    "over",
    [
        WaitingFrame(()),
        AnsweredFrame("m1", state=TurnState.FAILED),
        QuestionsFrame((ShownQuestion("q", "Which?", (), 0.0, here=True, session=HERE),)),
    ],
    ids=lambda over: type(over).__name__,
)
async def test_a_notice_waits_for_no_answer_that_came_to_nothing_or_asks_something(over: Shown) -> None:
    told = Told([*GROWS, over])
    await is_told(told)
    assert told.updates[1:3] == [("agent_message_chunk", "wo"), NOTICE]


async def test_what_is_said_after_a_notice_that_waited_is_told_at_once() -> None:
    told = Told([*GROWS, WaitingFrame(()), NoticeFrame("(Another is done.)")])
    await is_told(told)
    assert told.updates[-1] == ("agent_message_chunk", "\n\n(Another is done.)\n\n")


class Broken(Told):
    """A window whose frames end in an error that nobody foresaw."""

    async def frames(self) -> AsyncIterator[Shown]:
        for frame in self._frames:
            yield frame
        raise KeyError("nobody foresaw it")


async def test_nobody_waits_for_a_conversation_that_has_ended() -> None:
    editor: Any = (told := Broken([]))
    conversation = Conversation(HERE, told, editor)
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(RequestError):
            await conversation.opened()
        with pytest.raises(RequestError):
            await conversation.prompt([text_block("tea")], "1")
    await conversation.close()


class Busy(Told):
    """A window with too much to do, until it has less."""

    def __init__(self) -> None:
        super().__init__([])
        self.busy = True
        self.taken = asyncio.Event()

    async def ask(self, request: Asked) -> None:
        if self.busy:
            raise Overloaded("200 requests wait.")
        self.taken.set()


async def test_a_prompt_that_was_refused_can_be_said_again() -> None:
    editor: Any = (told := Busy())
    conversation = Conversation(HERE, told, editor)
    async with asyncio.timeout(PATIENCE):
        for _ in range(2):
            with pytest.raises(Overloaded):
                await conversation.prompt([text_block("tea")], "1")
        told.busy = False
        saying = asyncio.create_task(conversation.prompt([text_block("tea")], "1"))
        await told.taken.wait()
        assert not saying.done(), "it was taken, and waits for its answer"
    await conversation.close()
    saying.cancel()
