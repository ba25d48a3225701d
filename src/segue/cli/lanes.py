"""`segue lanes`: where people talk, and which session each place speaks to."""

import click

from segue.cli.host import looked_at
from segue.cli.output import awaited, json_option, moment, print_list, printable
from segue.core.bindings import LaneStanding
from segue.core.destinations import OWN, spot
from segue.core.lanes import Address, Kind, Person
from segue.core.moves import Why
from segue.core.values import Moment, SessionId, Value
from segue.core.windows import of_script
from segue.errors import Refused
from segue.store import Store

_PAGE = 500


@click.command()
@json_option
@awaited
async def command(*, as_json: bool) -> None:
    """List every lane with the session that it speaks to, since when and why."""
    found: list[LaneStanding] = []
    async with looked_at() as (store, host):
        while page := await store.lanes(found[-1].lane if found else None, _PAGE):
            found += page
        titles = [await _title(store, host, standing) for standing in found]
    entitled = [each for each in zip(found, titles, strict=True) if not _gone(each[0].lane.address)]
    values, rows = [_shown(*each) for each in entitled], [_row(*each) for each in entitled]
    print_list(values, rows, "No lanes: nobody has talked yet.", as_json=as_json)


def _gone(address: Address) -> bool:
    """Whether it was a script's window, in which nobody talks any more."""
    return address.platform in OWN and of_script(address.chat)


async def _title(store: Store, host: Person, standing: LaneStanding) -> str:
    """The session's title, if it is the host's own: titles are for their owners."""
    if standing.session is None:
        return ""
    try:
        return (await store.session(standing.session, host)).title
    except Refused:
        return ""


class ShownLane(Value, frozen=True):
    """A lane as JSON."""

    lane: str
    address: Address
    person: str
    kind: Kind
    name: str
    session: SessionId | None
    title: str
    since: Moment | None
    why: Why | None


def _shown(standing: LaneStanding, title: str) -> ShownLane:
    lane = standing.lane
    bound = (standing.session, title, standing.since, standing.why)
    return ShownLane(lane.key, lane.address, lane.person, standing.kind, standing.name, *bound)


def _row(standing: LaneStanding, title: str) -> tuple[str, str, str, str]:
    place = _place(standing)
    if standing.session is None or standing.since is None:
        return place, "-", "", ""
    named = f"{title} ({standing.session})" if title else standing.session
    return place, named, moment(standing.since), str(standing.why)


def _place(standing: LaneStanding) -> str:
    """A lane as people read it, with every id that tells it from others."""
    lane = standing.lane
    parts = {"chat": lane.address.chat if lane.address.platform in OWN else "", "person": lane.person}
    named = f" ({printable(standing.name)})" if standing.name else ""
    return printable(", ".join([spot(lane.address), *(f"{part} {id}" for part, id in parts.items() if id)])) + named
