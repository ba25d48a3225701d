"""Access: one table, and nothing that people can type is missing from it."""

from itertools import product

import pytest

from segue.core.commands import SPECS, Command, Spec, may_ask, parse
from segue.core.people import PEOPLE, Facts, Standing, authorize, standing_of
from segue.core.values import PersonId
from segue.errors import Refusal, Refused

ANN, BOB = PersonId("ann"), PersonId("bob")


@pytest.mark.parametrize("text", ["hello", "/unknown", "//new", ""])
def test_what_is_no_command_is_for_everybody_who_may_speak(text: str) -> None:
    assert may_ask(parse(text)) == PEOPLE


@pytest.mark.parametrize(
    ("facts", "standing"),
    [
        pytest.param(Facts(ANN), Standing.STRANGER, id="nobody let them in"),
        pytest.param(Facts(ANN, owner=ANN), Standing.STRANGER, id="who was let in once and isn't now"),
        pytest.param(Facts(ANN, known=True), Standing.OWNER, id="of what they are about to begin"),
        pytest.param(Facts(ANN, known=True, owner=ANN), Standing.OWNER, id="of what they began"),
        pytest.param(Facts(ANN, known=True, owner=BOB), Standing.PARTICIPANT, id="in another's session"),
        pytest.param(Facts(ANN, host=True), Standing.HOST, id="the host, whom nobody has to let in"),
        pytest.param(Facts(ANN, host=True, known=True, owner=BOB), Standing.HOST, id="the host in another's session"),
        pytest.param(Facts(ANN, host=True, owner=ANN), Standing.HOST, id="the host in a session of their own"),
    ],
)
def test_what_somebody_is(facts: Facts, standing: Standing) -> None:
    assert standing_of(facts) is standing


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_the_host_may_do_everything_and_each_may_what_those_below_may(spec: Spec) -> None:
    ranks = [Standing.STRANGER, Standing.PARTICIPANT, Standing.OWNER, Standing.HOST]
    allowed = [standing in spec.may for standing in ranks]
    assert allowed == sorted(allowed)
    assert allowed[-1]
    assert may_ask(Command(spec.name)) == spec.may


def test_a_stranger_may_only_say_who_they_are() -> None:
    assert [spec.name for spec in SPECS if Standing.STRANGER in spec.may] == ["link"]


def test_a_participant_speaks_and_starts_anew_and_touches_nothing_of_others() -> None:
    said, own = {"stop", "new", "yes", "no", "answer", "forget"}, {"resume", "sessions", "search", "link", "unlink"}
    seen = {"status", "who", "why", "help", "questions", "notes"}
    assert {spec.name for spec in SPECS if Standing.PARTICIPANT in spec.may} == said | own | seen


def test_the_gate_opens_by_the_table_alone() -> None:
    for standing, spec in product(Standing, SPECS):
        if standing in spec.may:
            authorize(standing, spec.may)
        else:
            with pytest.raises(Refused) as refused:
                authorize(standing, spec.may)
            assert refused.value.why is Refusal.NOT_ALLOWED
