"""Calls stay below what a platform allows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.adapters.shared import rates
from segue.adapters.shared.rates import Limiter, Rate
from segue.testing import HandClock

CHAT, GROUP = Rate(1, 1.0), Rate(20, 60.0)


def test_a_call_waits_until_the_window_has_moved_on() -> None:
    limiter, clock = Limiter(), HandClock()
    assert limiter.take({"chat": CHAT}, clock()) == 0
    assert limiter.take({"chat": CHAT}, clock()) == pytest.approx(1.0)
    clock.passes(0.4)
    assert limiter.take({"chat": CHAT}, clock()) == pytest.approx(0.6)
    clock.passes(0.6)
    assert limiter.take({"chat": CHAT}, clock()) == 0


def test_chats_do_not_wait_for_each_other() -> None:
    limiter = Limiter()
    assert limiter.take({"one": CHAT}, 0.0) == 0
    assert limiter.take({"two": CHAT}, 0.0) == 0


def test_a_call_that_has_to_wait_is_not_counted() -> None:
    limiter = Limiter()
    limiter.take({"all": Rate(2, 1.0), "one": CHAT}, 0.0)
    assert limiter.take({"all": Rate(2, 1.0), "one": CHAT}, 0.0) > 0
    assert limiter.take({"all": Rate(2, 1.0), "two": CHAT}, 0.0) == 0
    assert limiter.take({"all": Rate(2, 1.0), "three": CHAT}, 0.0) > 0


def test_the_longest_wait_counts() -> None:
    limiter = Limiter()
    for second in range(20):
        assert limiter.take({"chat": CHAT, "group": GROUP}, float(second)) == 0
    assert limiter.take({"chat": CHAT, "group": GROUP}, 20.0) == pytest.approx(40.0)
    assert limiter.take({"chat": CHAT, "group": GROUP}, 60.0) == 0


@given(st.lists(st.floats(0, 5), max_size=200))
def test_no_window_ever_has_more_than_it_may(pauses: list[float]) -> None:
    limiter, now, made = Limiter(), 0.0, []
    for pause in pauses:
        now += pause
        if limiter.take({"group": GROUP}, now) == 0:
            made.append(now)
    for start in made:
        assert sum(start <= at < start + GROUP.seconds for at in made) <= GROUP.count


def test_chats_that_fell_silent_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "_MANY", 10)
    limiter = Limiter()
    for n in range(100):
        limiter.take({f"chat {n}": CHAT}, float(n))
    assert len(limiter._calls) <= 11
