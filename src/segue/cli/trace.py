"""`segue trace`: the path of a message."""

import asyncio

import click

from segue.changes.exchange.explanations import Errors, explain
from segue.changes.exchange.traces import Trace, of_message
from segue.cli.host import config_here, opened
from segue.cli.output import json_option, print_json
from segue.errors import SegueError


@click.command()
@click.argument("message")
@json_option
def command(message: str, *, as_json: bool) -> None:
    """Follow a message by its platform's id: received, queued, answered, sent.

    MESSAGE is the id of what somebody wrote, or of what Segue answered.
    """
    trace = asyncio.run(_trace(message))
    if not (trace.turns or trace.seen or trace.notices):
        raise SegueError(f'No message is known by "{message}". Give the id that its platform knows it by.')
    if as_json:
        print_json(trace)
    else:
        click.echo("\n".join(explain(trace, Errors.TOLD)))


async def _trace(message: str) -> Trace:
    async with opened(config_here()) as (store, _):
        return await store.driver.read(of_message, message)
