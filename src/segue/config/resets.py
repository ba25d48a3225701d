"""[resets]: when a session ends by itself; a platform's policy beats that of a lane's kind, which beats the default."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from segue.config.tables import Tables, as_table, joined, nearest
from segue.core.lanes import Kind
from segue.core.resets import Policies, Policy, When
from segue.core.values import Value
from segue.errors import Invalid

_ENDING = "ending"
_KINDS = (*map(str, Kind), "thread")
_NEEDS = {
    "idle_minutes": (When.IDLE, When.BOTH),
    "hour": (When.DAILY, When.BOTH),
    "zone": (When.DAILY, When.BOTH),
    "notice": (When.IDLE, When.DAILY, When.BOTH),
}


class EndingSection(Value, frozen=True):
    """[resets]: what an agent is asked when a session is over."""

    ending: str = ""


def read_ending(table: object, tables: Tables) -> str:
    """What an agent is asked when a session is over; empty if nothing."""
    own = {key: value for key, value in as_table(table, "resets").items() if key == _ENDING}
    return tables.read(own, EndingSection, "resets").ending


def read_resets(table: object, platforms: Collection[str], tables: Tables) -> Policies:
    """[resets] itself is the default; [resets.KIND] and [resets.PLATFORM] say only what differs from it."""
    table = as_table(table, "resets")
    default = {key: value for key, value in table.items() if not isinstance(value, Mapping) and key != _ENDING}
    special = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    for key in special:
        if key not in _KINDS and key not in platforms:
            raise Invalid(f"resets.{key}", "there is no such kind or platform", nearest(key, [*_KINDS, *platforms]))
    policy = tables.read(default, Policy, "resets")
    if not special:
        _refuse_idle_talk(default, policy, "resets")
    policies = {key: _special(key, default, own, tables) for key, own in special.items()}
    return Policies(
        default=policy,
        kinds={key: found for key, found in policies.items() if key in _KINDS},
        platforms={key: found for key, found in policies.items() if key not in _KINDS},
    )


def _special(key: str, default: Mapping[str, Any], own: Mapping[str, Any], tables: Tables) -> Policy:
    path = f"resets.{key}"
    policy = tables.read({**default, **own}, Policy, path)
    _refuse_idle_talk(own, policy, path)
    return policy


def _refuse_idle_talk(own: Mapping[str, Any], policy: Policy, path: str) -> None:
    """Refuse a key that does nothing, since its host believes that it does."""
    for key, whens in _NEEDS.items():
        if key in own and policy.when not in whens:
            fix = f'Add when = "{whens[0]}" or "{whens[1]}", or remove it.'
            raise Invalid(joined(path, key), f'it does nothing while when is "{policy.when}"', fix)
