"""`segue status`: the state of the local gateway and its accounts."""

import os

import click

from segue.cli.doctor import FindingState, gateway_findings
from segue.cli.output import awaited, json_option, print_list, printable
from segue.config import data_folder


@click.command()
@json_option
@awaited
async def command(*, as_json: bool) -> None:
    """Show whether a gateway runs here, and the state of its accounts. Exit code 1 unless all is well."""
    findings = await gateway_findings(data_folder(os.environ))
    rows = [(f.about, printable(f"{f.says} {f.fix}".strip())) for f in findings]
    print_list(findings, rows, "", as_json=as_json)
    if any(finding.state is not FindingState.FINE for finding in findings):
        raise click.exceptions.Exit(1)
