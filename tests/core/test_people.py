"""Access: one table, and nothing that people can type is missing from it."""

from itertools import product

import pytest

from segue.core.commands import SPECS, parse
from segue.core.lanes import Address, Identity, Place
from segue.core.messages import Arrival, Speaker, Text
from segue.core.people import MAY, Action, Facts, Standing, action_of, authorize, standing_of
from segue.core.values import PersonId
from segue.errors import Refusal, Refused

ANN, BOB = PersonId("ann"), PersonId("bob")
EVENTS = {Action.SPEAK, Action.EDIT, Action.PAIR}


def test_every_action_has_a_row_and_every_command_is_an_action() -> None:
    assert set(MAY) == set(Action)
    assert {spec.name for spec in SPECS} == {action.value for action in Action} - EVENTS


def arrival(text: str, edits: str = "") -> Arrival:
    place = Place(Address("telegram", "bot", chat="c"))
    return Arrival(place, "m1", Speaker(Identity("telegram", "bot", "u")), (Text(text),), 0.0, edits=edits)


@pytest.mark.parametrize("text", [f"/{spec.name}" for spec in SPECS] + ["hello", "/unknown", "//new", ""])
@pytest.mark.parametrize("edits", ["", "m0"])
def test_every_arrival_asks_for_something_that_the_table_has(text: str, edits: str) -> None:
    asked = action_of(arrival(text, edits), parse(text))
    assert asked in MAY
    if text.removeprefix("/") in {spec.name for spec in SPECS}:
        assert asked == text.removeprefix("/")
    else:
        assert asked is (Action.EDIT if edits else Action.SPEAK)


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


def test_only_the_host_lets_strangers_in() -> None:
    assert MAY[Action.PAIR] == {Standing.HOST}


@pytest.mark.parametrize("action", Action)
def test_the_host_may_do_everything_and_each_may_what_those_below_may(action: Action) -> None:
    ranks = [Standing.STRANGER, Standing.PARTICIPANT, Standing.OWNER, Standing.HOST]
    allowed = [standing in MAY[action] for standing in ranks]
    assert allowed == sorted(allowed)
    assert allowed[-1]


@pytest.mark.parametrize("action", sorted(set(Action) - {Action.LINK}))
def test_a_stranger_may_only_say_who_they_are(action: Action) -> None:
    assert Standing.STRANGER not in MAY[action]


def test_a_participant_speaks_and_starts_anew_and_touches_nothing_of_others() -> None:
    said = {Action.SPEAK, Action.EDIT, Action.STOP, Action.NEW, Action.YES, Action.NO}
    own = {Action.RESUME, Action.SESSIONS, Action.SEARCH, Action.LINK}
    seen = {Action.STATUS, Action.WHO, Action.WHY, Action.HELP}
    assert {action for action in Action if Standing.PARTICIPANT in MAY[action]} == said | own | seen


def test_the_gate_opens_by_the_table_alone() -> None:
    for standing, action in product(Standing, Action):
        if standing in MAY[action]:
            authorize(standing, action)
        else:
            with pytest.raises(Refused) as refused:
                authorize(standing, action)
            assert refused.value.why is Refusal.NOT_ALLOWED
