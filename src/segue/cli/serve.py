"""`segue serve`: the gateway, until somebody stops it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import click

from segue.cli.brought import bring
from segue.cli.opening import config_here
from segue.cli.running import PAGE, Running, serve
from segue.cli.stopping import Stop
from segue.config import load
from segue.runtime import logs
from segue.runtime.listening import Listener


@click.command()
@click.argument("agent", required=False, metavar="[MODULE:NAME]")
@click.option("--port", type=click.IntRange(0, 65535), help="Where to listen; 0 takes any free port.  [default: 8800]")
@click.option("--host", help="The address to listen on.  [default: 127.0.0.1]")
@click.option("--config", "file", type=click.Path(path_type=Path), help="Read this file instead of segue.toml.")
def command(agent: str | None, port: int | None, host: str | None, file: Path | None) -> None:
    """Run the gateway: take messages in, have them answered, send the answers.

    MODULE:NAME is an agent of your own, instead of the one in segue.toml: an async function, a pydantic-ai Agent, an
    Agent, or a Gateway with one, such as bot:reply for `reply` in bot.py of this folder.

    Stop it with Ctrl-C or SIGTERM; a second one stops it at once.
    """
    config = load(file, os.environ) if file else config_here()
    brought = bring(agent) if agent is not None else None
    listener = Listener(host or config.server.host, config.server.port if port is None else port)
    logs.start(sys.stderr, config.secrets)

    def ready(running: Running) -> None:
        click.echo(f"Segue listens on {running.url}")
        click.echo(f"{PAGE}{running.link()}")

    asyncio.run(serve(config, listener, Stop(), ready, brought))
