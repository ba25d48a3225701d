"""`segue letters`: dead letters, which are messages that couldn't be received or sent."""

import re
import time

import click

from segue.changes.exchange import deliveries, letters
from segue.changes.exchange.deliveries import Dead
from segue.changes.exchange.letters import DeadLetter
from segue.cli import completes
from segue.cli.host import looked_at, opened
from segue.cli.output import awaited, json_option, moment, print_json, print_list, printable
from segue.core.values import Moment, Value
from segue.errors import Invalid

_MOST = 1000
_SHORT = 60


class ShownLetter(Value, frozen=True):
    """A dead letter of either direction, as it is printed."""

    id: str
    at: Moment
    where: str
    why: str
    text: str


@click.group()
def command() -> None:
    """List, read, retry and discard messages that couldn't be received or sent."""


@command.command(name="list")
@json_option
@awaited
async def list_(*, as_json: bool) -> None:
    """List dead letters, newest first.

    `in-N` couldn't be received, `out-N` couldn't be sent.
    """
    async with looked_at() as (store, _):
        came = await store.driver.read(letters.newest, _MOST)
        went = await store.driver.read(deliveries.dead, _MOST)
    values = sorted([*map(_came, came), *map(_went, went)], key=lambda letter: -letter.at)
    rows = [(v.id, moment(v.at), printable(v.where), printable(v.why)[:_SHORT]) for v in values]
    print_list(values, rows, "No dead letters.", as_json=as_json)


@command.command()
@click.argument("letter", shell_complete=completes("letters"))
@awaited
async def show(letter: str) -> None:
    """Show a dead letter: its place, its error and its text."""
    way, number = _named(letter)
    async with looked_at() as (store, _):
        if way == "in":
            print_json(_came(await store.driver.read(letters.one_letter, number)))
        else:
            print_json(_went(await store.driver.read(deliveries.dead_one, number)))


@command.command()
@click.argument("letter", shell_complete=completes("letters"))
@awaited
async def retry(letter: str) -> None:
    """Retry receiving or sending this message."""
    way, number = _named(letter)
    async with opened() as (store, _):
        if way == "in":
            await store.driver.write(letters.want, number, time.time())
        else:
            await store.driver.write(deliveries.retry, number)
    click.echo(f"{letter} is tried again by the gateway, at once if it runs.")


@command.command()
@click.argument("letter", shell_complete=completes("letters"))
@awaited
async def drop(letter: str) -> None:
    """Discard this dead letter."""
    way, number = _named(letter)
    async with opened() as (store, _):
        await store.driver.write(letters.drop if way == "in" else deliveries.drop, number, time.time())
    click.echo(f"{letter} is dropped.")


def _named(letter: str) -> tuple[str, int]:
    found = re.fullmatch(r"(in|out)-([0-9]{1,18})", letter)
    if found is None:
        raise Invalid("letter", f'"{letter}" names none', "Write in-N or out-N, as `segue letters list` does.")
    return found[1], int(found[2])


def _came(letter: DeadLetter) -> ShownLetter:
    return ShownLetter(f"in-{letter.id}", letter.at, letter.account.replace("/", "."), letter.why, letter.raw)


def _went(dead: Dead) -> ShownLetter:
    where = f"{dead.address.platform}.{dead.address.account}:{dead.address.chat}"
    return ShownLetter(f"out-{dead.id}", dead.at, where, dead.error, dead.text)
