"""`segue trace`: the path of a message."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import click

from segue.cli.opening import config_here, opened
from segue.cli.showing import json_option, moment, print_json, printable
from segue.errors import SegueError
from segue.store.traces import Trace, TracedDelivery, TracedTurn, of_message


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
        click.echo("\n".join(_lines(trace)))


async def _trace(message: str) -> Trace:
    async with opened(config_here()) as (store, _):
        return await store.driver.read(of_message, message)


def _lines(trace: Trace) -> Iterator[str]:
    for turn in trace.turns:
        yield from _turn(turn)
    for seen in trace.seen:
        yield f"{moment(seen.at)}  received on {seen.account}; it became no turn: a command, an edit, or refused"
    yield from map(_delivery, trace.notices)


def _turn(turn: TracedTurn) -> Iterator[str]:
    by = f" from {turn.name}" if turn.name else ""
    yield f"{moment(turn.accepted)}  received{by} in {turn.lane or 'no lane'}"
    rule = f", bound since {moment(turn.since)}: {turn.why}" if turn.since is not None else ""
    yield f"{moment(turn.accepted)}  queued as turn {turn.turn} of session {turn.session}{rule}"
    if turn.finished is None:
        yield f"{'now':19}  {turn.state}"
    else:
        together = f" together with turn {turn.within}" if turn.within != turn.turn else ""
        error = f": {printable(turn.error)}" if turn.error else ""
        yield f"{moment(turn.finished)}  {turn.state}{together}{error}"
    yield from map(_delivery, turn.deliveries)


def _delivery(delivery: TracedDelivery) -> str:
    when = moment(delivery.at) if delivery.at is not None else f"{'now':19}"
    tries = "1 attempt" if delivery.attempts == 1 else f"{delivery.attempts} attempts"
    id = f" as {printable(delivery.message)}" if delivery.message else ""
    error = f": {printable(delivery.error)}" if delivery.error else ""
    return f"{when}  {delivery.state} to {delivery.address}{id}, {tries}{error}"
