"""`segue schedules`: the host's own scheduled work, read from the store, whether or not a gateway runs."""

import asyncio
import time

import click

from segue.changes.exchange import schedules
from segue.cli.host import config_here, opened
from segue.cli.output import json_option, print_json, print_rows, short
from segue.core.schedules import shown
from segue.errors import Invalid, Refused


@click.group()
def command() -> None:
    """List and cancel your scheduled work."""


@command.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List what is still to come, the next first."""
    asyncio.run(_list(as_json=as_json))


async def _list(*, as_json: bool) -> None:
    async with opened(config_here()) as (store, host):
        found = await store.driver.read(schedules.owned, host.id)
    if as_json:
        print_json(found)
    elif found:
        print_rows([(s.id, shown(s.line, s.zone, s.due or s.since), s.deliver, short(s.task)) for s in found])
    else:
        click.echo("Nothing is scheduled. /schedule WHEN TASK in a chat does something later.")


@command.command()
@click.argument("id")
@json_option
def cancel(id: str, *, as_json: bool) -> None:
    """Cancel scheduled work by its id."""
    asyncio.run(_cancel(id, as_json=as_json))


async def _cancel(id: str, *, as_json: bool) -> None:
    async with opened(config_here()) as (store, host):
        try:
            gone = await store.driver.write(schedules.cancel, id, host.id, time.time())
        except Refused as refused:
            raise Invalid(
                "id", f'no scheduled work of yours is "{id}"', "`segue schedules list` lists it."
            ) from refused
    if as_json:
        print_json(gone)
    else:
        click.echo(f"Cancelled: {short(gone.task)}")
