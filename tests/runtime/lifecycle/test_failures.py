"""An item that fails is postponed and shown, and the others are done."""

import pytest

from segue.errors import Fenced, SendLater, SendNever, StoreClosed
from segue.runtime.lifecycle.failures import Failures, ItemGuard
from segue.testing import HandClock

PLACE = "Sorting letters"


class Post:
    """Letters to sort, some of which can't be."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.counted: list[str] = []
        self.failures = Failures(self.counted.append, self.clock)
        self.guard = ItemGuard(PLACE, self.failures)
        self.letters = ["a", "b", "c"]
        self.bad: dict[str, Exception] = {"a": ValueError("what Ada wrote")}
        self.tried: list[str] = []

    async def read(self, count: int) -> list[str]:
        return self.letters[:count]

    async def sort(self, letter: str) -> None:
        self.tried.append(letter)
        if letter in self.bad:
            raise self.bad[letter]
        self.letters.remove(letter)

    async def sweep(self, batch: int = 1) -> list[str]:
        """Look once; returns what was tried."""
        self.tried = []
        await self.guard.exhaust(self.read, batch, self.sort, str)
        return self.tried


async def test_one_that_fails_keeps_no_other_waiting_however_small_the_batch() -> None:
    post = Post()
    assert await post.sweep(batch=1) == ["a"]
    assert await post.sweep(batch=1) == ["b", "c"]
    assert post.letters == ["a"]


async def test_one_that_fails_is_tried_again_ever_later_until_it_works() -> None:
    post = Post()
    post.letters = ["a"]
    pauses = []
    for _ in range(12):
        assert await post.sweep() == ["a"]
        pause = 0
        while not (tried := await post.sweep()) and pause < 1000:
            post.clock.passes(1.0)
            pause += 1
        post.tried = tried
        pauses.append(pause)
        post.clock.passes(300.0)
    assert pauses[0] == 1
    assert pauses == sorted(pauses)
    assert max(pauses) == 300
    del post.bad["a"]
    assert await post.sweep() == ["a"]
    assert post.failures.problems == []
    assert len(post.counted) == 24
    assert set(post.counted) == {PLACE}


async def test_a_failure_is_shown_without_anybodys_words_until_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    post = Post()
    post.bad["b"] = PermissionError(13, "Permission denied")
    await post.sweep(batch=3)
    [problem] = post.failures.problems
    assert problem == f"{PLACE} fails for 2 items and is retried: [Errno 13] Permission denied. See the log."
    assert [record.exc_info is not None for record in caplog.records] == [True, True]
    post.clock.passes(2.0)
    await post.sweep(batch=3)
    assert len(caplog.records) == 2, "its traceback is logged once"
    post.bad.clear()
    post.clock.passes(300.0)
    await post.sweep(batch=3)
    assert post.failures.problems == []


async def test_what_failed_and_never_came_back_is_shown_for_a_while() -> None:
    post = Post()
    await post.sweep(batch=3)
    post.letters = []
    post.clock.passes(601.0)
    assert post.failures.problems == []


@pytest.mark.parametrize("error", [Fenced("a session"), StoreClosed("it was closed")])
async def test_a_lost_lease_and_a_closed_store_are_no_failures(error: Exception) -> None:
    post = Post()
    with pytest.raises(type(error)), post.guard.guarding("a"):
        raise error
    assert post.failures.problems == []


def test_an_error_that_an_adapter_does_not_name_is_a_refusal_that_is_shown() -> None:
    failures = Failures()
    with (
        pytest.raises(SendNever, match="its adapter failed"),
        failures.adapter_call("tg", "main", "deleting"),
    ):
        raise KeyError("message_id")
    assert failures.problems == ["tg.main: deleting fails and is retried: KeyError. See the log."]
    with pytest.raises(SendLater), failures.adapter_call("tg", "main", "deleting"):
        raise SendLater("busy")
    assert failures.problems == []
