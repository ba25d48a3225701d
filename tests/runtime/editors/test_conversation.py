"""What an editor is told of a conversation, whatever order a window's frames come in."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from segue.core.messages import File, Text
from segue.core.values import SessionId
from segue.runtime.editors.conversation import Conversation
from segue.runtime.windows.frames import (
    Asked,
    GrowthFrame,
    Shown,
    ShownSession,
    ShownTurn,
    TranscriptFrame,
    WaitingFrame,
)

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
    editor: Any = told
    conversation = Conversation(HERE, told, editor)
    async with asyncio.timeout(10):
        await told.all.wait()
    await conversation.close()
    assert told.updates == [("user_message_chunk", "and cake"), ("agent_message_chunk", "and cake")]
