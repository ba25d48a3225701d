"""Access: one table, and nothing that people can type is missing from it."""

from itertools import product

import pytest

from segue.core.access import MAY, Action, Standing, authorize
from segue.core.commands import SPECS
from segue.errors import Refusal, Refused


def test_every_action_has_a_row_and_every_command_is_an_action() -> None:
    assert set(MAY) == set(Action)
    assert {spec.name for spec in SPECS} == {action.value for action in Action} - {Action.SPEAK}


@pytest.mark.parametrize("action", Action)
def test_the_host_may_do_everything_and_each_may_what_those_below_may(action: Action) -> None:
    ranks = [Standing.STRANGER, Standing.PARTICIPANT, Standing.OWNER, Standing.HOST]
    allowed = [standing in MAY[action] for standing in ranks]
    assert allowed == sorted(allowed)
    assert allowed[-1]


@pytest.mark.parametrize("action", sorted(set(Action) - {Action.LINK}))
def test_a_stranger_may_only_say_who_they_are(action: Action) -> None:
    assert Standing.STRANGER not in MAY[action]


@pytest.mark.parametrize("action", [Action.SPEAK, Action.STOP, Action.NEW])
def test_a_participant_speaks_stops_and_starts_anew(action: Action) -> None:
    authorize(Standing.PARTICIPANT, action)


@pytest.mark.parametrize("action", [Action.HANDOFF, Action.TITLE, Action.EXPORT, Action.HOME])
def test_a_participant_moves_names_and_takes_nothing_of_others(action: Action) -> None:
    with pytest.raises(Refused):
        authorize(Standing.PARTICIPANT, action)


def test_the_gate_opens_by_the_table_alone() -> None:
    for standing, action in product(Standing, Action):
        if standing in MAY[action]:
            authorize(standing, action)
        else:
            with pytest.raises(Refused) as refused:
                authorize(standing, action)
            assert refused.value.why is Refusal.NOT_ALLOWED
