"""A sample of everything that fails; `make drill` takes each of them."""

from tests.drills import failing
from tests.drills.failing import Fault

SAMPLE = (
    Fault("verb", "delete", KeyError),
    Fault("verb", "send", OSError),
    Fault("verb", "grow", KeyError),
    Fault("change", "exchange.turns.claim", KeyError),
    Fault("change", "forgetting.cleaning.to_clean", OSError),
    Fault("file", "os.unlink", OSError),
)


def test_what_fails_stops_nothing_else_and_is_told() -> None:
    assert failing.run(SAMPLE) == []


def test_a_case_that_nothing_reaches_is_a_mistake_of_the_drill() -> None:
    wrong = failing.run([Fault("change", "exchange.turns.nothing", KeyError)], patience=1.0)
    assert any("it was never called" in each for each in wrong)
