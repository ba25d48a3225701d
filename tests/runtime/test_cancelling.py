"""Cancelling what loses a cancellation."""

import asyncio
import gc

import pytest

from segue.core.turns import Claim, Run
from segue.core.values import SessionId
from segue.runtime.cancelling import surely
from segue.runtime.turns.running import Running, until_stopped


class Deaf:
    """Loses the first cancellations, as a library does that mistakes them for its own."""

    def __init__(self, times: int) -> None:
        self.begun = asyncio.Event()
        self.lost = 0
        self._times = times

    async def work(self) -> None:
        while True:
            self.begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if self.lost == self._times:
                    raise
                self.lost += 1


@pytest.mark.parametrize("times", [0, 1, 3])
async def test_what_loses_a_cancellation_is_told_again(times: int) -> None:
    deaf = Deaf(times)
    doing = asyncio.create_task(surely(deaf.work, again=0.01))
    await deaf.begun.wait()
    doing.cancel()
    await asyncio.wait([doing])
    assert doing.cancelled()
    assert deaf.lost == times
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_deadline_is_kept_though_its_cancellation_is_lost() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await surely(Deaf(1).work, again=0.01)


async def test_it_is_what_the_work_is() -> None:
    async def well() -> int:
        return 3

    async def badly() -> int:
        raise ValueError("no")

    assert await surely(well) == 3
    with pytest.raises(ValueError, match="no"):
        await surely(badly)


async def test_what_the_work_says_to_being_cancelled_changes_nothing() -> None:
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("how rude")

    doing = asyncio.create_task(surely(work))
    await begun.wait()
    doing.cancel()
    await asyncio.wait([doing])
    assert doing.cancelled()


async def test_each_cancellation_is_told_at_once() -> None:
    deaf = Deaf(1)
    doing = asyncio.create_task(surely(deaf.work, again=3600))
    for _ in range(2):
        await deaf.begun.wait()
        deaf.begun.clear()
        doing.cancel()
    await asyncio.wait([doing])
    assert doing.cancelled()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_turn_that_was_stopped_before_it_began_is_never_begun() -> None:
    begun = False

    async def answer() -> None:
        nonlocal begun
        begun = True

    live = Running(Run(Claim(SessionId("s"), "me", 1), (), None))
    live.stop()
    await until_stopped(live, answer)
    gc.collect()  # what was left unawaited complains, which fails a test
    assert not begun


async def test_no_time_passes_for_a_turn_while_any_of_its_questions_is_open() -> None:
    live = Running(Run(Claim(SessionId("s"), "me", 1), (), None))
    async with asyncio.timeout(3600.0) as live.whole:  # noqa: ASYNC100 -- its end is what is looked at
        first, second = live.asking(60.0), live.asking(60.0)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert live.whole.when() is None, "somebody is asked still"
        second.__exit__(None, None, None)
        assert live.whole.when() is not None
