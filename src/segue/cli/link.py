"""`segue link`: a new sign-in link of the page."""

import asyncio
import os

import click

from segue.cli.output import json_option, print_json
from segue.cli.terminal.client import ask
from segue.config import data_folder
from segue.errors import SegueError


@click.command()
@json_option
def command(*, as_json: bool) -> None:
    """Print a link that signs one browser in to the page of the running gateway, once, for ten minutes."""
    answer = asyncio.run(ask(data_folder(os.environ), "POST", "/link"))
    if answer.status_code != 200:
        raise SegueError(f"The gateway gave no link ({answer.status_code}). Restart it with `segue serve`.")
    if as_json:
        print_json(answer.json())
    else:
        click.echo(answer.json()["link"])
