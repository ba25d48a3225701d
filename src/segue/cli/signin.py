"""`segue signin`: prints a new sign-in link for the page."""

import os

import click

from segue.cli.output import awaited, json_option, print_one
from segue.cli.terminal.client import ask
from segue.config import data_folder
from segue.errors import SegueError


@click.command()
@json_option
@awaited
async def command(*, as_json: bool) -> None:
    """Print a link that signs one browser in to the running gateway's page. It works once, for ten minutes."""
    answer = await ask(data_folder(os.environ), "POST", "/link")
    if answer.status_code != 200:
        raise SegueError(f"The gateway gave no link ({answer.status_code}). Restart it with `segue serve`.")
    print_one(answer.json(), answer.json()["link"], as_json=as_json)
