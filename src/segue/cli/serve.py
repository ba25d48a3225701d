"""`segue serve`: runs the gateway until a signal stops it."""

import asyncio
import os
import sys
from importlib import import_module
from pathlib import Path

import click

from segue.cli.gateway import PAGE, RunningGateway, Stop, serve
from segue.cli.host import config_here, make_log
from segue.config import load
from segue.errors import Invalid
from segue.runtime.gateway import Gateway
from segue.runtime.server.callers import more_descriptors
from segue.runtime.server.listeners import Listener
from segue.runtime.telemetry import logs
from segue.runtime.telemetry.log_files import logging_to


@click.command()
@click.argument("agent", required=False, metavar="[MODULE:NAME]")
@click.option("--port", type=click.IntRange(0, 65535), help="Where to listen; 0 takes any free port.  [default: 8800]")
@click.option("--host", help="The address to listen on.  [default: 127.0.0.1]")
@click.option("--config", "file", type=click.Path(path_type=Path), help="Read this file instead of segue.toml.")
def command(agent: str | None, port: int | None, host: str | None, file: Path | None) -> None:
    """Run the gateway: accept messages, have agents answer them, send the answers.

    MODULE:NAME is an agent of your own, instead of the one in segue.toml: an async function, a pydantic-ai Agent, an
    Agent, or a Gateway with one. Example: bot:reply for `reply` in bot.py of this folder.

    Stop it with Ctrl-C or SIGTERM; a second signal stops it at once.
    """
    config = load(file, os.environ) if file else config_here()
    brought = bring(agent) if agent is not None else None
    listener = Listener(host or config.server.host, config.server.port if port is None else port)
    more_descriptors()
    logs.start(sys.stderr, config.secrets)

    def ready(running: RunningGateway) -> None:
        click.echo(f"Segue listens on {listener.url}")
        click.echo(f"{PAGE}{running.link()}")

    with logging_to(make_log(config.data), config.secrets):
        asyncio.run(serve(config, listener, Stop(), ready, brought))


_FIX = "Write MODULE:NAME, such as bot:reply for the function `reply` in bot.py."


def bring(name: str) -> Gateway:
    """Import a gateway or an agent from a module. This folder is searched too."""
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise Invalid("agent", f'"{name}" names nothing in a module', _FIX)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: object = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise Invalid("agent", f"there is no module {error.name} here", _FIX) from error
    except AttributeError as error:
        raise Invalid("agent", f"{module} has no {attribute}", _FIX) from error
    # `Gateway` refuses an object that isn't an agent.
    return found if isinstance(found, Gateway) else Gateway(agent=found)  # type: ignore[arg-type]
