"""`segue schedules`: the host's scheduled work. It reads the store, so no gateway needs to run."""

import time
from pathlib import Path

import click

from segue.changes.exchange import schedules
from segue.cli import completes
from segue.cli.host import config_here, file_store, looked_at, opened
from segue.cli.output import awaited, json_option, print_list, print_one, short, write_pieces
from segue.config import Fetch
from segue.core.contracts.files import RESULTS
from segue.core.schedules import shown
from segue.core.values import LAST_MOMENT
from segue.errors import Invalid, Refused


@click.group()
def command() -> None:
    """List, show and cancel your scheduled work."""


@command.command("list")
@json_option
@awaited
async def list_(*, as_json: bool) -> None:
    """List upcoming work, the next first."""
    async with looked_at() as (store, host):
        found = await store.driver.read(schedules.owned, host.id)
    rows = [(s.id, shown(s.line, s.zone, s.due or s.since), s.deliver, short(s.task)) for s in found]
    print_list(
        found, rows, "Nothing is scheduled. /schedule WHEN TASK in a chat does something later.", as_json=as_json
    )


@command.command(short_help="Show scheduled work and its stored results.")
@click.argument("id", shell_complete=completes("schedules"))
@click.option("--output", type=click.Path(path_type=Path), metavar="PATH", help="Write a result to this file.")
@click.option("--time", "wanted", metavar="TIME", help="The result of that run, instead of the newest.")
@json_option
@awaited
async def show(id: str, output: Path | None, wanted: str | None, *, as_json: bool) -> None:
    """Show scheduled work and the results stored here (`--to local`), oldest first; --output writes one to a file."""
    async with looked_at() as (store, host):
        try:
            schedule = await store.driver.read(schedules.find, id, host.id)
        except Refused as refused:
            raise _unknown(id) from refused
        files = file_store(config_here(Fetch.STORE), store)
        paths = {Path(path).stem: path for path in await files.list_kept(f"{RESULTS}/{schedule.id}", 0.0, LAST_MOMENT)}
        times = sorted(paths)
        if output is not None:
            run = wanted or (times[-1] if times else "")
            if run not in paths:
                known = ", ".join(times) or "none"
                raise Invalid("time", f"{schedule.id} left no result {run}".rstrip(), f"Its results: {known}.")
            await write_pieces(files.content(paths[run]), output)
            click.echo(f"Wrote the result of {run} to {output}.")
            return
    words = shown(schedule.line, schedule.zone, schedule.due or schedule.since)
    text = "\n".join([f"{schedule.id}  {words}  {schedule.deliver}  {short(schedule.task)}", *times])
    print_one({"schedule": schedule, "results": times}, text, as_json=as_json)


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
            raise _unknown(id) from refused
    print_one(gone, f"Cancelled: {short(gone.task)}", as_json=as_json)


def _unknown(id: str) -> Invalid:
    return Invalid("id", f'no scheduled work of yours is "{id}"', "`segue schedules list` lists it.")
