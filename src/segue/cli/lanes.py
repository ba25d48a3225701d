"""`segue lanes`: where people talk, which session each place is bound to, and which chat ids are linked."""

import asyncio
import time

import click

from segue.changes.people.persons import WHY
from segue.changes.places import addresses, merges
from segue.changes.places.merges import ChatMerge
from segue.cli.host import looked_at, opened
from segue.cli.output import awaited, json_option, moment, print_list, printable
from segue.core.bindings import LaneStanding
from segue.core.destinations import OWN, spot
from segue.core.lanes import Address, Kind, Person
from segue.core.moves import Why
from segue.core.values import Moment, SessionId, Value
from segue.core.windows import of_script
from segue.errors import Invalid, Refused
from segue.store import Store, fresh_ids

_PAGE = 500


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context, *, as_json: bool) -> None:
    """List every lane with its session, the time of the binding and its reason.

    CHAT is PLATFORM.ACCOUNT:CHAT.
    """
    if ctx.invoked_subcommand is None:
        asyncio.run(_list(as_json=as_json))


async def _list(*, as_json: bool) -> None:
    found: list[LaneStanding] = []
    async with looked_at() as (store, host):
        while page := await store.lanes(found[-1].lane if found else None, _PAGE):
            found += page
        titles = [await _title(store, host, standing) for standing in found]
    entitled = [each for each in zip(found, titles, strict=True) if not _gone(each[0].lane.address)]
    values, rows = [_shown(*each) for each in entitled], [_row(*each) for each in entitled]
    print_list(values, rows, "No lanes: nobody has talked yet.", as_json=as_json)


@command.command()
@json_option
@awaited
async def links(*, as_json: bool) -> None:
    """List the links between ids of one chat.

    The newest come first, with their time and reason.
    """
    async with looked_at() as (store, _):
        found = await store.driver.read(merges.holding, _PAGE)
    rows = [chat_link(merge) for merge in found]
    print_list(found, rows, "No links: every chat goes by one id.", as_json=as_json)


@command.command()
@click.argument("link")
@awaited
async def unlink(link: str) -> None:
    """Undo a link between two chats.

    Each chat gets back its own bindings, and later messages stay where they are. LINK is the id that `segue lanes
    links` prints.
    """
    async with opened() as (store, host):
        parted = await store.driver.write(merges.part, link, host.id, fresh_ids(time.time)(), time.time())
    click.echo(f"Parted: {printable(parted.gone.chat)} is a chat of its own again.")


@command.command()
@click.argument("chat")
@click.argument("other")
@awaited
async def link(chat: str, other: str) -> None:
    """Link two chats as one, even if an earlier link was undone."""
    async with opened() as (store, host):
        one, two = await _chat(store, chat), await _chat(store, other)
        stays = await store.driver.write(merges.link, one, two, host.id, fresh_ids(time.time)(), time.time())
    click.echo(f"Linked: both are {printable(spot(stays))} now. `segue lanes links` lists it.")


async def _chat(store: Store, named: str) -> Address:
    """Find the chat that the host named."""
    account, _, chat = named.partition(":")
    platform, _, name = account.partition(".")
    found = await store.driver.read(addresses.chats, platform, name, chat)
    if len(found) != 1:
        what = "several chats go" if found else "no chat goes"
        raise Invalid("chat", f"{what} by {named!r}", "Name it PLATFORM.ACCOUNT:CHAT, as `segue lanes` lists it.")
    return found[0].address


def chat_link(merge: ChatMerge) -> tuple[str, str, str, str]:
    """Return a link of two chats as a row."""
    both = f"{spot(merge.gone)}, with {merge.kept.chat}"
    return moment(merge.since), merge.id, printable(both), WHY[merge.why]


def _gone(address: Address) -> bool:
    """Return whether an address was a script's window, which is never used again."""
    return address.platform in OWN and of_script(address.chat)


async def _title(store: Store, host: Person, standing: LaneStanding) -> str:
    """Return the session's title if the session is the host's own. Other titles are private."""
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
    """Return a lane in words, with every id that distinguishes it from others."""
    lane = standing.lane
    parts = {"chat": lane.address.chat if lane.address.platform in OWN else "", "person": lane.person}
    named = f" ({printable(standing.name)})" if standing.name else ""
    return printable(", ".join([spot(lane.address), *(f"{part} {id}" for part, id in parts.items() if id)])) + named
