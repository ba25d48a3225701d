"""A sample of the drill of questions; `make drill` asks ten thousand."""

import pytest

from segue.core.settings import Streams
from tests.drills import questions
from tests.drills.planting import Bug


async def test_every_question_is_decided_once_and_nothing_is_done_without_a_yes(database: str) -> None:
    found = await questions.run(database, people=10, seed=7, kills=3, streams=Streams.LIVE)
    assert not found.wrong, found.wrong


async def test_what_nobody_answers_ends_with_its_time_over_kills(database: str) -> None:
    found = await questions.run(database, people=6, seed=8, kills=2, deadline=1.0)
    assert not found.wrong, found.wrong


@pytest.mark.parametrize(
    ("bug", "deadline", "words"),
    [
        (Bug.ANSWERED_TWICE, 86_400.0, "told twice"),
        (Bug.RUNS_BEFORE_THE_ANSWER, 1.0, "done without a yes"),
        (Bug.NO_DEADLINE, 1.0, "stuck"),
    ],
)
async def test_a_planted_mistake_is_found(
    bug: Bug, deadline: float, words: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for seed in range(5):
        where = str(tmp_path_factory.mktemp("questions") / "segue.db")
        found = await questions.run(where, people=10, seed=seed, kills=1, deadline=deadline, bug=bug)
        if any(words in line for line in found.wrong):
            return
    pytest.fail(f"{bug} wasn't found")
