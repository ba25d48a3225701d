"""`segue import`: what other programs remember becomes sessions."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import click

from segue.cli.host import config_here, opened
from segue.cli.output import awaited, json_option, print_json, printable
from segue.config import Config, Fetch
from segue.imports.hermes import import_hermes


@click.group()
def command() -> None:
    """Bring in what another program remembers; a second import adds only what is new."""


@command.command(short_help="Bring in a Hermes home.")
@click.argument("path", type=click.Path(path_type=Path))
@json_option
@awaited
async def hermes(path: Path, *, as_json: bool) -> None:
    """Bring in a Hermes home: its sessions, what was said in them, and the lanes that they were on.

    PATH is the folder that Hermes keeps its state in, usually ~/.hermes; it stays as it is.
    """
    config = config_here(Fetch.STORE)
    async with opened() as (store, host):
        report = await import_hermes(path, store, host, config.gateway.routing.rules, _accounts(config))
    if as_json:
        print_json(report)
        return
    click.echo(f"{report.sessions} sessions with {report.entries} entries, and {report.lanes} lanes, were brought in.")
    if report.known:
        click.echo(f"{report.known} sessions were here already.")
    if report.empty:
        click.echo(f"{report.empty} sessions had nothing in them.")
    for skipped in report.skipped:
        click.echo(printable(f"Left out: {skipped.where}: {skipped.why}"))


def _accounts(config: Config) -> Mapping[str, str]:
    """The account that stands for each platform, where there is only one."""
    count = Counter(account.platform for account in config.accounts)
    return {account.platform: account.name for account in config.accounts if count[account.platform] == 1}
