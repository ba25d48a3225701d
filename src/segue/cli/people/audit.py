"""`segue audit`: facts about who came in, as whom, and what was taken from whom."""

import asyncio

import click

from segue.changes import audit
from segue.changes.audit import Noted
from segue.cli.host import looked_at
from segue.cli.output import json_option, moment, print_json, print_rows, printable
from segue.core.lanes import Identity


@click.command()
@click.option("--count", default=100, show_default=True, type=click.IntRange(1), help="How many, the newest first.")
@json_option
def command(count: int, *, as_json: bool) -> None:
    """List who was let in, linked, signed in, became host, was refused or revoked, and what was forgotten."""
    found = asyncio.run(_newest(count))
    if as_json:
        print_json(found)
    elif found:
        print_rows([row(noted) for noted in found])
    else:
        click.echo("Nothing has happened yet.")


async def _newest(count: int) -> list[Noted]:
    async with looked_at() as (store, _):
        return await store.driver.read(audit.newest, count)


def row(noted: Noted) -> tuple[str, str, str, str, str]:
    fact = noted.fact
    identity = Identity.parse(fact.identity).name if fact.identity else fact.account.replace("/", ".")
    times = f" ({noted.count} times)" if noted.count > 1 else ""
    who = printable(" ".join(filter(None, (noted.name, fact.person))))
    by = f", by {printable(noted.by_name or fact.by)}" if fact.by not in ("", fact.person) else ""
    return moment(noted.at), fact.event + times, who, printable(identity), printable(fact.detail + by)
