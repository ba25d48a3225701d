"""Lockers: what adapters must remember beside messages."""

from segue.changes.rows import each
from segue.core.contracts.database import Transaction
from segue.core.contracts.lockers import Thing
from segue.core.values import Value
from segue.database.statements import q
from segue.errors import Outdated

_LAST = chr(0x10FFFF)


class Named(Value, frozen=True):
    """A thing with its name."""

    name: str
    value: str
    version: int


def read(account: str, beginning: str) -> Transaction[dict[str, Thing]]:
    """The things of an account whose names begin so."""
    found = yield from each(Named, q.things(account=account, first=beginning, last=beginning + _LAST))
    return {thing.name: Thing(thing.value, thing.version) for thing in found}


def keep(account: str, things: dict[str, Thing]) -> Transaction[None]:
    """Change things of an account, all or none."""
    # In one order, so that no two replicas wait for each other.
    for name, thing in sorted(things.items()):
        at = {"account": account, "name": name}
        if not thing.value and not thing.version:
            continue
        if not thing.value:
            change = q.drop_thing(version=thing.version, **at)
        elif thing.version:
            change = q.change_thing(value=thing.value, version=thing.version, **at)
        else:
            change = q.add_thing(value=thing.value, **at)
        if not (yield change):
            raise Outdated(name)
