"""`segue import`: imports the conversations of other programs."""

from collections import Counter
from pathlib import Path

import click
from msgspec.structs import replace

from segue.cli.host import config_here, looked_at, opened
from segue.cli.output import awaited, json_option, print_json, print_rows, printable, short
from segue.config import Fetch
from segue.core.windows import HOSTS
from segue.imports.hermes import Fate, Mode, Report, import_hermes


@click.group()
def command() -> None:
    """Import the conversations of another program. A second import adds only new ones."""


@command.command(short_help="Bring in a Hermes home.")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--apply", "applies", is_flag=True, help="Bring it in; without this, only tell what would come.")
@json_option
@awaited
async def hermes(path: Path, *, applies: bool, as_json: bool) -> None:
    """Import a Hermes home: its sessions, their transcripts and costs, its lanes and its homes.

    PATH is Hermes' state folder, usually ~/.hermes; nothing in it changes. Without --apply, nothing is written here
    either.
    """
    config = config_here(Fetch.STORE)
    settings = replace(config.gateway, hosts=(*HOSTS, *config.gateway.hosts))
    mode, way = (Mode.APPLY, opened) if applies else (Mode.LOOK, looked_at)
    async with way() as (store, host):
        report = await import_hermes(path, store, host, settings, mode)
    if as_json:
        print_json(report)
        return
    _show(report, mode)


def _show(report: Report, mode: Mode) -> None:
    if mode is Mode.LOOK and report.listed:
        print_rows(
            [
                (listed.fate, listed.id, f"{listed.entries} entries", listed.owner or "yours", short(listed.title))
                for listed in report.listed
            ]
        )
    verb = "were brought in" if mode is Mode.APPLY else "would be brought in"
    what = f"{report.sessions} sessions with {report.entries} entries, {report.lanes} lanes and {report.homes} homes"
    click.echo(f"{what} {verb}.")
    if report.known:
        click.echo(f"{report.known} sessions were here already.")
    if report.empty:
        click.echo(f"{report.empty} sessions had nothing in them.")
    for skipped in report.skipped:
        click.echo(printable(f"Left out: {skipped.where}: {skipped.why}"))
    others = Counter(listed.owner for listed in report.listed if listed.owner and listed.fate is not Fate.EMPTY)
    for owner, count in others.items():
        click.echo(printable(f'{count} belong to {owner}. If that is you, name "{owner}" in owners in segue.toml.'))
    for platform in report.strange:
        fix = f"Set it up first (`segue add {platform}`), so that its lanes go on."
        click.echo(printable(f"{platform} has no account here, or several. {fix}"))
    if mode is Mode.LOOK:
        click.echo("Nothing was written. Add --apply to bring it in.")
