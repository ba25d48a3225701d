"""`segue` without a command: the terminal chat, with a gateway in this process if none runs."""

import asyncio
import os
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path

import click
import msgspec

from segue.cli import completes
from segue.cli.gateway import PAGE, SOCKET, RunningGateway, Stop, gateway
from segue.cli.host import config_here, make_log, named, opened
from segue.cli.output import debug_option
from segue.cli.service.logs import tracebacks
from segue.cli.terminal.client import Client, connected
from segue.cli.terminal.plain import given, piped, plain
from segue.cli.terminal.screen import Terminal
from segue.config import Config, data_folder
from segue.errors import Invalid
from segue.runtime.server.listeners import Listener, is_served
from segue.runtime.telemetry.log_files import logging_to
from segue.runtime.windows.frames import Begins, OpenRequest

FIRST = "Hello!"
"""The first message where nobody can type one."""
STAYS = "Another terminal is attached: the gateway goes on until the last one leaves. Ctrl-C ends it now."
_FEWEST = 6
"""The fewest entries on a screen of any size."""


@click.command()
@click.option("--page", is_flag=True, help="Show the page's address too; without a terminal, serve it until stopped.")
@click.option("--new", is_flag=True, help="Begin a new conversation.")
@click.option(
    "--join",
    is_flag=False,
    flag_value="",
    metavar="[SESSION]",
    shell_complete=completes("sessions"),
    help="Join a conversation: one of yours by id or title, else that of the terminal that is open.",
)
@debug_option
def command(*, page: bool, new: bool, join: str | None, debug: bool) -> None:
    """Talk to the agent in this terminal.

    The first terminal continues the last conversation. A second terminal beside it has its own.

    If no gateway runs, this process runs one while you talk, for the terminal and the page alone. `segue serve` runs
    one permanently, and connects platforms.
    """
    begins = Begins.NEW if new else Begins.OWN if join is None else Begins.JOINED
    folder = data_folder(os.environ)
    with tracebacks(folder) if debug else nullcontext():
        asyncio.run(_talk(folder, begins, join or "", page=page))


async def _talk(folder: Path, begins: Begins, join: str, *, page: bool) -> None:
    opening = await _opening(begins, join)
    if is_served(folder / SOCKET):
        async with connected(folder, opening) as client:
            await _converse(client, folder, "")
        return
    config = config_here()
    # A gateway that ends with its terminal can't answer on platforms: a handoff needs `segue serve`.
    alone = msgspec.structs.replace(config, accounts=())
    with logging_to(make_log(config.data), config.secrets):
        async with gateway(alone, _listener(config)) as running:
            await _talk_there(running, config.data, opening, page=page)


async def _talk_there(running: RunningGateway, data: Path, opening: OpenRequest, *, page: bool) -> None:
    async with connected(data, opening) as client:
        if page and not sys.stdin.isatty():
            await _show(client, running)
            return
        link = running.link() if page else ""
        if link:
            click.echo(f"{PAGE}{link}\n")
        await _converse(client, data, running.url if page else "")
    if await running.others():
        click.echo(STAYS)
        await running.outlast()


async def _show(client: Client, running: RunningGateway) -> None:
    """Without a terminal: send one message, print the page's address, then serve until stopped."""
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


async def _opening(begins: Begins, join: str) -> OpenRequest:
    """Return a window with about as many entries as the screen has room for."""
    session = None
    if join:
        async with opened() as (store, host):
            session = (await named(store, host, join)).id
    if not sys.stdin.isatty():
        # A script continues the terminal's session unless it names another.
        begins = Begins.LAST if begins is Begins.OWN else begins
    return OpenRequest(max(_FEWEST, shutil.get_terminal_size().lines // 2), begins=begins, session=session)


def _listener(config: Config) -> Listener:
    """Return the page's listener, at another port if that one is taken."""
    try:
        return Listener(config.server.host, config.server.port)
    except Invalid:
        return Listener(config.server.host, 0)
