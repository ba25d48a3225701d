"""`segue schedules`: the host's own scheduled work, read from the store, whether or not a gateway runs."""

import time

import click

from segue.changes.exchange import schedules
from segue.cli import completes
from segue.cli.host import looked_at, opened
from segue.cli.output import awaited, json_option, print_list, print_one, short
from segue.core.schedules import shown
from segue.errors import Invalid, Refused


@click.group()
def command() -> None:
    """List and cancel your scheduled work."""


@command.command("list")
@json_option
@awaited
async def list_(*, as_json: bool) -> None:
    """List what is still to come, the next first."""
    async with looked_at() as (store, host):
        found = await store.driver.read(schedules.owned, host.id)
    rows = [(s.id, shown(s.line, s.zone, s.due or s.since), s.deliver, short(s.task)) for s in found]
    print_list(
        found, rows, "Nothing is scheduled. /schedule WHEN TASK in a chat does something later.", as_json=as_json
    )


@command.command()
@click.argument("id", shell_complete=completes("schedules"))
@json_option
@awaited
async def cancel(id: str, *, as_json: bool) -> None:
    """Cancel scheduled work by its id."""
    async with opened() as (store, host):
        try:
            gone = await store.driver.write(schedules.cancel, id, host.id, time.time())
        except Refused as refused:
            raise Invalid(
                "id", f'no scheduled work of yours is "{id}"', "`segue schedules list` lists it."
            ) from refused
    print_one(gone, f"Cancelled: {short(gone.task)}", as_json=as_json)
