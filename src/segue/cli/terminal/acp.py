"""`segue acp`: Segue as an editor's agent, by the Agent Client Protocol on standard input and output."""

import asyncio
from importlib import import_module
from importlib.util import find_spec

import click

from segue.cli.host import config_here
from segue.errors import NotInstalled


@click.command()
def command() -> None:
    """Serve an editor that speaks the Agent Client Protocol, on standard input and output.

    The editor lists your sessions of all platforms, opens one with its whole transcript, and talks in it.

    If no gateway runs, this process runs one while the editor is open. `segue serve` runs one permanently, and connects
    platforms.
    """
    if find_spec("acp") is None:
        raise NotInstalled("segue acp", "agent-client-protocol", "acp")
    asyncio.run(import_module("segue.cli.terminal.editor").serve(config_here()))
