"""`segue` alone: the terminal chat, with a gateway in this process if none runs."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import click
import msgspec

from segue.cli.gateway import PAGE, SOCKET, RunningGateway, Stop, gateway
from segue.cli.host import config_here, open_log
from segue.cli.terminal.client import Client, connected
from segue.cli.terminal.plain import given, piped, plain
from segue.cli.terminal.screen import Terminal
from segue.config import Config, data_folder
from segue.errors import Invalid
from segue.runtime.server.listeners import Listener, is_served
from segue.runtime.telemetry import logs
from segue.runtime.windows.frames import OpenRequest

FIRST = "Hello!"
"""The first message where nobody is there to type one."""
_FEWEST = 6
"""Entries that even the smallest terminal is shown."""


@click.command()
@click.option("--page", is_flag=True, help="Show the page's address too; without a terminal, serve it until stopped.")
def command(*, page: bool) -> None:
    """Talk to the agent in this terminal.

    If no gateway runs, one runs in this process for as long as you talk, for the terminal and the page alone;
    `segue serve` keeps one running, and connects platforms.
    """
    asyncio.run(_talk(data_folder(os.environ), page=page))


async def _talk(folder: Path, *, page: bool) -> None:
    if is_served(folder / SOCKET):
        async with connected(folder, _opening()) as client:
            await _converse(client, folder, "")
        return
    config = config_here()
    logs.start(open_log(config.data), config.secrets)
    # Whoever hands off leaves, and a gateway that leaves with them would answer nobody: platforms need `segue serve`.
    alone = msgspec.structs.replace(config, accounts=())
    async with gateway(alone, _listener(config)) as running, connected(config.data, _opening()) as client:
        if page and not sys.stdin.isatty():
            await _show(client, running)
            return
        link = running.link() if page else ""
        if link:
            click.echo(f"{PAGE}{link}\n")
        await _converse(client, config.data, running.url if page else "")


async def _show(client: Client, running: RunningGateway) -> None:
    """Without a terminal: one exchange, the page's address, then serve until stopped."""
    stop = Stop()
    stop.listen()
    click.echo(f"You: {FIRST}")
    await plain(client, given(FIRST))
    click.echo(f"\n{PAGE}{running.link()}\nServing until stopped.")
    await stop.wait()


async def _converse(client: Client, folder: Path, page: str) -> None:
    if sys.stdin.isatty() and sys.stdout.isatty():
        await Terminal(client, folder, page).run()
    else:
        await plain(client, piped())


def _opening() -> OpenRequest:
    """A window that shows about as much as the screen holds."""
    return OpenRequest(page=max(_FEWEST, shutil.get_terminal_size().lines // 2))


def _listener(config: Config) -> Listener:
    """The page's listener; at another port if that one is taken."""
    try:
        return Listener(config.server.host, config.server.port)
    except Invalid:
        return Listener(config.server.host, 0)
