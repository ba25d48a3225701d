"""Calls stay below what a platform allows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.adapters.shared import rates
from segue.adapters.shared.rates import Bucket, Limiter, Rate
from segue.errors import SendLater
from segue.testing import HandClock

CHAT, GROUP = Rate(1, 1.0), Rate(20, 60.0)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def limiter(clock: HandClock) -> Limiter:
    return Limiter(clock)


def test_a_call_waits_until_the_window_has_moved_on(clock: HandClock, limiter: Limiter) -> None:
    assert limiter.take({"chat": CHAT}) == 0
    assert limiter.take({"chat": CHAT}) == pytest.approx(1.0)
    clock.passes(0.4)
    assert limiter.take({"chat": CHAT}) == pytest.approx(0.6)
    clock.passes(0.6)
    assert limiter.take({"chat": CHAT}) == 0


def test_chats_do_not_wait_for_each_other(limiter: Limiter) -> None:
    assert limiter.take({"one": CHAT}) == 0
    assert limiter.take({"two": CHAT}) == 0


def test_what_a_platform_said_of_one_chat_holds_though_others_are_forgotten(
    clock: HandClock, limiter: Limiter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "_MANY", 3)
    limiter.quiet(100.0, "chat")
    for n in range(9):
        clock.passes(2.0)
        assert limiter.take({f"chat {n}": CHAT}) == 0
    assert limiter.take({"chat": CHAT}) == pytest.approx(82.0)


def test_a_call_that_has_to_wait_is_not_counted(limiter: Limiter) -> None:
    limiter.take({"all": Rate(2, 1.0), "one": CHAT})
    assert limiter.take({"all": Rate(2, 1.0), "one": CHAT}) > 0
    assert limiter.take({"all": Rate(2, 1.0), "two": CHAT}) == 0
    assert limiter.take({"all": Rate(2, 1.0), "three": CHAT}) > 0


def test_the_longest_wait_counts(clock: HandClock, limiter: Limiter) -> None:
    for _ in range(20):
        assert limiter.take({"chat": CHAT, "group": GROUP}) == 0
        clock.passes(1.0)
    assert limiter.take({"chat": CHAT, "group": GROUP}) == pytest.approx(40.0)
    clock.passes(40.0)
    assert limiter.take({"chat": CHAT, "group": GROUP}) == 0


@given(st.lists(st.floats(0, 5), max_size=200))
def test_no_window_ever_has_more_than_it_may(pauses: list[float]) -> None:
    clock, made = HandClock(), []
    limiter = Limiter(clock)
    for pause in pauses:
        clock.passes(pause)
        if limiter.take({"group": GROUP}) == 0:
            made.append(clock())
    for start in made:
        assert sum(start <= at < start + GROUP.seconds for at in made) <= GROUP.count


def test_a_bucket_gives_many_at_once_and_then_one_after_the_other(clock: HandClock, limiter: Limiter) -> None:
    bucket = {"written": Bucket(4, 2.0)}
    assert [limiter.take(bucket) for _ in range(6)] == [0.0, 0.0, 0.0, 0.0, 2.0, 2.0]
    clock.passes(2.0)
    assert [limiter.take(bucket) for _ in range(2)] == [0.0, 2.0]
    clock.passes(60.0)
    assert [limiter.take(bucket) for _ in range(5)] == [0.0, 0.0, 0.0, 0.0, 2.0]


def test_a_smaller_bucket_under_the_same_key_leaves_something_for_the_larger(limiter: Limiter) -> None:
    shown, final = {"written": Bucket(2, 2.0)}, {"written": Bucket(4, 2.0)}
    assert [limiter.take(shown) for _ in range(3)] == [0.0, 0.0, 2.0]
    assert [limiter.take(final) for _ in range(3)] == [0.0, 0.0, 2.0]
    assert limiter.take(shown) == 6.0


async def test_what_the_platform_wants_left_alone_is(clock: HandClock, limiter: Limiter) -> None:
    limiter.quiet(None, "chat")
    await limiter.turn({"chat": CHAT})
    limiter.quiet(17.0, "chat", "group")
    clock.passes(7.0)
    with pytest.raises(SendLater) as told:
        await limiter.turn({"group": GROUP})
    assert told.value.seconds == pytest.approx(10.0)
    await limiter.turn({"elsewhere": CHAT})
    clock.passes(10.0)
    await limiter.turn({"chat": CHAT, "group": GROUP})


def test_chats_that_fell_silent_are_forgotten(
    clock: HandClock, limiter: Limiter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "_MANY", 10)
    for n in range(100):
        limiter.take({f"chat {n}": CHAT})
        clock.passes(1.0)
    assert len(limiter._made) <= 11
