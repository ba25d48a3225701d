"""A loop that fails is restarted and shown, and the others go on."""

import asyncio

import pytest

from segue.errors import Fenced, StoreClosed
from segue.runtime.lifecycle.failures import Failures
from segue.runtime.lifecycle.supervisor import Loop, Supervisor


class Work:
    """A loop that fails in its first runs."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.runs = asyncio.Event()
        self.ended = False

    async def run(self) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.runs.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = True


async def test_a_loop_that_fails_is_restarted_and_the_others_run_on() -> None:
    failures = Failures()
    supervisor, bad, good = Supervisor(failures), Work(KeyError("x"), OSError("no disk")), Work()
    task = asyncio.create_task(supervisor.run([Loop("bad", bad.run), Loop("good", good.run)]))
    await good.runs.wait()
    assert failures.problems == ["The loop bad fails and is retried: KeyError. See the log."]
    await bad.runs.wait()
    assert not good.ended
    await supervisor.stop(task, 60.0)
    assert (bad.ended, good.ended) == (True, True)


@pytest.mark.parametrize("error", [Fenced("this replica"), StoreClosed("it was closed")])
async def test_a_lost_lease_and_a_closed_store_end_all_loops(error: Exception) -> None:
    good = Work()
    supervisor = Supervisor(Failures())
    with pytest.raises(ExceptionGroup) as group:
        await supervisor.run([Loop("good", good.run), Loop("beat", Work(error).run)])
    assert group.value.exceptions == (error,)
    assert good.ended


async def test_a_loop_that_ends_by_itself_is_not_restarted() -> None:
    runs: list[int] = []

    async def once() -> None:
        runs.append(1)

    await Supervisor(Failures()).run([Loop("once", once)])
    assert runs == [1]


async def test_a_loop_that_outlives_its_cancellation_is_cancelled_again_and_then_left_behind(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.runtime.lifecycle.supervisor._CALLS", 0.02)
    told, over = asyncio.Event(), False

    async def stubborn() -> None:
        while not over:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                told.set()
        raise asyncio.CancelledError

    supervisor = Supervisor(Failures())
    task = asyncio.create_task(supervisor.run([Loop("stubborn", stubborn)]))
    await asyncio.sleep(0)
    await supervisor.stop(task, 0.05)
    assert told.is_set()
    assert "left behind: stubborn" in caplog.text
    over = True
    await supervisor.stop(task, 60.0)
    assert task.done()
