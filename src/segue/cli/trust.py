"""`segue trust`: the segue.toml of this folder counts from now on."""

import os
from pathlib import Path

import click

from segue.config.file import NAME
from segue.config.trust import trust
from segue.errors import Invalid


@click.command()
def command() -> None:
    """Let the segue.toml of this folder count, as it is now.

    It can run commands and name where your keys are sent: look at it first.
    """
    file = Path.cwd() / NAME
    if not file.is_file():
        raise Invalid(NAME, f"there is none in {file.parent}", "Go to the folder that has it.")
    trust(file, os.environ)
    click.echo(f"{file} counts from now on. Once it is changed, `segue trust` it again.")
