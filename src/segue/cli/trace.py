"""`segue trace`: follows the path of a message."""

import click

from segue.changes.exchange.explanations import Errors, explain
from segue.changes.exchange.traces import of_message
from segue.cli.host import looked_at
from segue.cli.output import awaited, json_option, print_one
from segue.errors import SegueError


@click.command()
@click.argument("message")
@json_option
@awaited
async def command(message: str, *, as_json: bool) -> None:
    """Follow a message by its platform's id: received, queued, answered, sent.

    MESSAGE is the id of a person's message or of Segue's answer.
    """
    async with looked_at() as (store, _):
        trace = await store.driver.read(of_message, message)
    if not (trace.turns or trace.seen or trace.notices):
        raise SegueError(f'No message is known by "{message}". Give the id that its platform knows it by.')
    print_one(trace, "\n".join(explain(trace, Errors.TOLD)), as_json=as_json)
