"""Progress and questions: what an agent does now is shown and never kept; nobody can be asked yet, which is said."""

from pathlib import Path

import pytest

from segue.core.contracts.agents import Progress, Work
from segue.core.values import SessionId
from segue.errors import Invalid
from segue.testing import Pause, ScriptedAgent, Telegram
from tests.in_process import gateway_on


async def test_progress_is_shown_while_a_turn_runs_and_never_kept(tmp_path: Path) -> None:
    platform, pause = Telegram(), Pause()
    agent = ScriptedAgent(["Well", Progress("looking it up"), pause, ", it is green."])
    ann = platform.person("Ann")
    chat = platform.dm(ann)
    async with gateway_on(tmp_path, agent, platform) as gateway:
        ann.says("which colour?", chat)
        await pause.reached()
        await chat.reads("Well\n\n(looking it up …)")
        pause.over()
        await chat.reads("Well, it is green.")
        [standing] = await gateway.store.lanes()
        assert standing.session is not None
        said = [entry.text for entry in await gateway.store.path(standing.session) if entry.text]
        assert said[-1] == "Well, it is green."


async def test_a_question_is_refused_in_words_as_long_as_nobody_can_be_asked() -> None:
    work = Work(SessionId("s"), 1, "", (), ())
    with pytest.raises(Invalid, match="nobody can be asked"):
        await work.ask("Which one?", ("this", "that"), key="which")
