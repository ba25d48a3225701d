"""Handoffs: one table, final states that stay final, and a deadline that always comes."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.handoffs import LIVE, TABLE, Patience, State, Step, after, deadline
from segue.errors import IllegalStep

FINAL = {State.DONE, State.FAILED, State.CANCELLED}


@pytest.mark.parametrize(
    ("steps", "end"),
    [
        pytest.param([], State.REQUESTED, id="asked for"),
        pytest.param([Step.CLAIM], State.CLAIMED, id="taken"),
        pytest.param([Step.CLAIM, Step.CLAIM], State.CLAIMED, id="taken over from a replica that died"),
        pytest.param([Step.CLAIM, Step.CLAIM, Step.COMPLETE], State.DONE, id="moved by who took it over"),
        pytest.param([Step.CLAIM, Step.COMPLETE], State.DONE, id="moved"),
        pytest.param([Step.CLAIM, Step.CLAIM, Step.FAIL], State.FAILED, id="failed after it was taken over"),
        pytest.param([Step.FAIL], State.FAILED, id="nobody took it in time"),
        pytest.param([Step.CANCEL], State.CANCELLED, id="cancelled before anybody took it"),
        pytest.param([Step.CLAIM, Step.CANCEL], State.CANCELLED, id="cancelled midway"),
    ],
)
def test_a_life(steps: list[Step], end: State) -> None:
    state = State.REQUESTED
    for step in steps:
        state = after(state, step)
    assert state is end


@pytest.mark.parametrize(("state", "step"), list(product(sorted(FINAL), Step)))
def test_a_handoff_that_ended_never_goes_on(state: State, step: Step) -> None:
    with pytest.raises(IllegalStep, match=f"{state} can't {step}"):
        after(state, step)


def test_what_nobody_took_is_never_done() -> None:
    with pytest.raises(IllegalStep):
        after(State.REQUESTED, Step.COMPLETE)


def test_every_state_can_be_reached_and_only_the_ended_ones_are_final() -> None:
    reached = {State.REQUESTED}
    for _ in State:
        reached |= {end for (state, _), end in TABLE.items() if state in reached}
    assert reached == set(State)
    assert set(State) - FINAL == LIVE


@pytest.mark.parametrize("state", sorted(LIVE))
def test_every_live_handoff_can_fail_and_be_cancelled(state: State) -> None:
    assert after(state, Step.FAIL) is State.FAILED
    assert after(state, Step.CANCEL) is State.CANCELLED


@given(st.lists(st.sampled_from(Step)))
def test_a_handoff_is_done_only_after_somebody_claimed_and_completed_it(steps: list[Step]) -> None:
    state = State.REQUESTED
    taken: list[Step] = []
    for step in steps:
        try:
            state = after(state, step)
        except IllegalStep:
            continue
        taken.append(step)
    if state is State.DONE:
        assert taken[0] is Step.CLAIM
        assert taken[-1] is Step.COMPLETE
    assert sum(step in {Step.COMPLETE, Step.FAIL, Step.CANCEL} for step in taken) <= 1


@pytest.mark.parametrize(
    ("progressed", "end"),
    [
        pytest.param(1000, 1060, id="a minute after it was asked for"),
        pytest.param(1030, 1090, id="a minute after the last progress"),
        pytest.param(1540, 1600, id="just ten minutes"),
        pytest.param(1590, 1600, id="ten minutes in all, however it goes on"),
    ],
)
def test_when_a_handoff_has_failed(progressed: float, end: float) -> None:
    assert deadline(1000, progressed, Patience()) == end


@given(st.integers(0, 10**10), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_progress_never_shortens_a_deadline_and_the_total_bounds_it(
    asked: int, spent: int, more: int, total: int
) -> None:
    patience = Patience(progress=60, total=total)
    first, second = (deadline(asked, asked + spent + later, patience) for later in (0, more))
    assert first <= second <= asked + total
