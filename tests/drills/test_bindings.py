"""A seeded sample of bindings under four processes, and a test of what checks their histories."""

import itertools
import math
import random

import pytest

from tests.drills import bindings
from tests.drills.bindings import disagree
from tests.drills.linear import Operation


async def test_what_four_processes_saw_of_each_lane_fits_one_order(database: str) -> None:
    found = await bindings.run(database, operations=300, seed=7)
    assert found.operations >= 300
    assert found.wrong == []


NEW = Operation("new", ("m1", "s1"), 1, 2, (None, "s1"))
WRONG = {
    "what was new is gone": [NEW, Operation("look", (), 3, 4, None)],
    "two started anew and neither saw the other": [NEW, Operation("new", ("m2", "s2"), 3, 4, (None, "s2"))],
    "who looked later saw the past": [
        Operation("new", ("m1", "s1"), 1, 9, (None, "s1")),
        Operation("look", (), 2, 3, "s1"),
        Operation("look", (), 4, 5, None),
    ],
    "a move was taken back twice": [
        NEW,
        Operation("undo", ("m1",), 3, 6, ("s1", None)),
        Operation("undo", ("m1",), 4, 7, ("s1", None)),
    ],
    "a move was taken back after another": [
        NEW,
        Operation("new", ("m2", "s2"), 3, 4, ("s1", "s2")),
        Operation("undo", ("m1",), 5, 6, ("s1", None)),
    ],
    "two messages each began a session": [
        Operation("talk", ("m1", "s1"), 1, 5, "s1"),
        Operation("talk", ("m2", "s2"), 2, 6, "s2"),
    ],
    "what never came back happened and was forgotten": [
        Operation("new", ("m1", "s1"), 1),
        Operation("look", (), 2, 3, "s1"),
        Operation("look", (), 4, 5, None),
    ],
}
RIGHT = {
    "nothing happened": [],
    "two at once, in either order": [
        Operation("new", ("m1", "s1"), 1, 5, ("s2", "s1")),
        Operation("new", ("m2", "s2"), 2, 6, (None, "s2")),
    ],
    "what never came back happened later": [
        Operation("new", ("m1", "s1"), 1),
        Operation("look", (), 2, 3, None),
        Operation("look", (), 4, 5, "s1"),
    ],
    "what never came back never happened": [Operation("new", ("m1", "s1"), 1), Operation("look", (), 4, 5, None)],
    "a move was taken back once": [
        NEW,
        Operation("undo", ("m1",), 3, 6, ("s1", None)),
        Operation("undo", ("m1",), 4, 7, "NOTHING_TO_UNDO"),
    ],
}


@pytest.mark.parametrize("what", WRONG)
def test_a_history_that_is_known_to_be_wrong_is_found(what: str) -> None:
    assert disagree(WRONG[what])


@pytest.mark.parametrize("what", RIGHT)
def test_a_history_that_is_known_to_be_right_passes(what: str) -> None:
    assert not disagree(RIGHT[what])


def test_the_search_finds_an_order_exactly_when_trying_all_of_them_does() -> None:
    verdicts = []
    for seed in range(400):
        history = _random(random.Random(seed))
        verdicts.append(_any_order(history))
        assert (not disagree(history)) == verdicts[-1], history
    assert 50 < sum(verdicts) < 350


def _random(dice: random.Random) -> list[Operation]:
    """A few operations whose results are guessed."""
    history = []
    for n in range(dice.randint(2, 5)):
        called = dice.randrange(10)
        returned = math.inf if dice.random() < 0.2 else called + dice.randint(1, 6)
        history.append(
            dice.choice(
                [
                    Operation("look", (), called, returned, dice.choice([None, "s0", "s1"])),
                    Operation("new", (f"m{n}", f"s{n}"), called, returned, (dice.choice([None, "s0"]), f"s{n}")),
                    Operation("talk", (f"m{n}", f"s{n}"), called, returned, dice.choice(["s0", f"s{n}"])),
                    Operation("release", (f"m{n}",), called, returned, dice.choice(["NOTHING_BOUND", ("s0", None)])),
                    Operation("undo", ("m0",), called, returned, dice.choice([("s0", None), "NOTHING_TO_UNDO"])),
                ]
            )
        )
    return history


def _any_order(history: list[Operation]) -> bool:
    """Whether one of all orders explains a history."""
    undone = {op.of[0] for op in history if op.do == "undo"}
    certain = [op for op in history if op.returned < math.inf]
    perhaps = [op for op in history if op.returned == math.inf]
    for count in range(len(perhaps) + 1):
        for happened in itertools.combinations(perhaps, count):
            for order in itertools.permutations([*certain, *happened]):
                if _explains(order, undone):
                    return True
    return False


def _explains(order: tuple[Operation, ...], undone: set[str]) -> bool:
    if any(later.returned < earlier.called for earlier, later in itertools.combinations(order, 2)):
        return False
    state: bindings.State = None, ()
    for op in order:
        got, state = bindings._step(state, op, undone)
        if op.returned < math.inf and got != op.got:
            return False
    return True
