"""`segue trust`: trusts the segue.toml of this folder."""

import os
from pathlib import Path

import click

from segue.config.file import NAME
from segue.config.trust import trust
from segue.errors import Invalid


@click.command()
def command() -> None:
    """Trust the segue.toml of this folder in its present form.

    It can run commands and decides where your keys are sent: read it first.
    """
    file = Path.cwd() / NAME
    if not file.is_file():
        raise Invalid(NAME, f"there is none in {file.parent}", "Go to the folder that has it.")
    trust(file, os.environ)
    click.echo(f"{file} counts from now on. Once it is changed, `segue trust` it again.")
