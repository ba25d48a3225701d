"""`segue handoff`: moves a session to another place, from a script."""

import asyncio

import click

from segue.cli import completes
from segue.cli.host import config_here, named, opened
from segue.cli.output import json_option, print_json, printable
from segue.cli.terminal.client import Client, NoGateway, connected
from segue.cli.terminal.handoff import STEPS
from segue.config import Fetch
from segue.core.handoffs import LIVE, State
from segue.core.values import SessionId, Value
from segue.runtime.windows.frames import Begins, HandoffFrame, HandoffRequest, OpenRequest, RefusedFrame


class HandoffOutcome(Value, frozen=True):
    """The result of a handoff."""

    id: str
    session: SessionId
    state: State
    to: str
    error: str = ""


class NotBegun(click.ClickException):
    """A handoff that was refused before anything moved."""

    exit_code = 2


@click.command()
@click.argument("session", shell_complete=completes("sessions"))
@click.argument("destination", shell_complete=completes("places"))
@click.option("--allow-readers", is_flag=True, help="More people may read the session there.")
@click.option("--yes", is_flag=True, hidden=True)
@json_option
def command(session: str, destination: str, *, allow_readers: bool, yes: bool, as_json: bool) -> None:
    """Move SESSION, by id or title, to DESTINATION, and wait until its agent has spoken there.

    DESTINATION is PLATFORM, ACCOUNT or PLATFORM.ACCOUNT, optionally with :CHAT. Exit codes: 0 it has moved, 1 it failed
    and hasn't moved, 2 it was refused before it began.
    """
    if yes:
        click.echo("--yes is called --allow-readers now. A later version won't know the old name.", err=True)
    outcome = asyncio.run(_hand_off(session, destination, allow_readers=allow_readers or yes, quiet=as_json))
    if as_json:
        print_json(outcome)
    elif outcome.state == State.DONE:
        click.echo(f"The conversation goes on in {printable(outcome.to)}.")
    else:
        click.echo(f"The conversation stayed where it was: {printable(outcome.error)}.", err=True)
    if outcome.state != State.DONE:
        raise SystemExit(1)


async def _hand_off(session: str, destination: str, *, allow_readers: bool, quiet: bool) -> HandoffOutcome:
    config = config_here(Fetch.STORE)
    async with opened() as (store, host):
        id = (await named(store, host, session)).id
    own = OpenRequest(page=1, lane=f"{id}:handoff", begins=Begins.HERE)
    async with connected(config.data, own) as client:
        await client.ask(HandoffRequest(id, destination, allow_readers))
        return await _follow(client, id, quiet=quiet)


async def _follow(client: Client, session: SessionId, *, quiet: bool) -> HandoffOutcome:
    async for frame in client.frames():
        if isinstance(frame, RefusedFrame):
            raise NotBegun(frame.text)
        if not isinstance(frame, HandoffFrame):
            continue
        if frame.state not in LIVE:
            return HandoffOutcome(frame.id, session, frame.state, frame.to, frame.error)
        if not quiet:
            click.echo(f"{frame.to}: {STEPS[frame.step]}", err=True)
    raise NoGateway("The gateway has gone; when it runs again, the handoff goes on or is taken back: `segue serve`.")
