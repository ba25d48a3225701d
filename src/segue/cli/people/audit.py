"""`segue audit`: facts about access, identities and deletions."""

import click

from segue.changes import audit
from segue.changes.audit import Noted
from segue.cli.host import looked_at
from segue.cli.output import awaited, json_option, moment, print_list, printable
from segue.core.lanes import Identity


@click.command()
@click.option("--count", default=100, show_default=True, type=click.IntRange(1), help="How many, the newest first.")
@json_option
@awaited
async def command(count: int, *, as_json: bool) -> None:
    """List who was let in, linked, signed in, made host, refused or revoked, and what was deleted."""
    async with looked_at() as (store, _):
        found = await store.driver.read(audit.newest, count)
    print_list(found, [row(noted) for noted in found], "Nothing has happened yet.", as_json=as_json)


def row(noted: Noted) -> tuple[str, str, str, str, str]:
    fact = noted.fact
    identity = Identity.parse(fact.identity).name if fact.identity else fact.account.replace("/", ".")
    times = f" ({noted.count} times)" if noted.count > 1 else ""
    who = printable(" ".join(filter(None, (noted.name, fact.person))))
    by = f", by {printable(noted.by_name or fact.by)}" if fact.by not in ("", fact.person) else ""
    return moment(noted.at), fact.event + times, who, printable(identity), printable(fact.detail + by)
