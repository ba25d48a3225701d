"""`segue chat`: sends one message and prints the reply."""

import asyncio
import sys
from contextlib import nullcontext
from uuid import uuid4

import click

from segue.changes.exchange.traces import TurnState
from segue.cli import completes
from segue.cli.host import config_here, named, opened
from segue.cli.output import debug_option, json_option, print_json, printable
from segue.cli.service.logs import tracebacks
from segue.cli.terminal.client import Client, NoGateway, connected, running
from segue.config import Config
from segue.core.questions import listed
from segue.core.values import SessionId, Value
from segue.errors import Invalid, SegueError
from segue.runtime.windows.frames import (
    AnsweredFrame,
    Begins,
    InvitationFrame,
    OpenRequest,
    QuestionsFrame,
    RefusedFrame,
    TranscriptFrame,
)
from segue.runtime.windows.invitation import invitation

_GATEWAYS = 10
"""How many gateways may end during one exchange: another `segue chat` ends with its own."""


class ChatReply(Value, frozen=True):
    """The reply to one message."""

    text: str
    session: SessionId | None = None
    """The session; None for the reply to a command, which is in no session."""
    title: str = ""
    turn: int = 0
    state: TurnState = TurnState.ANSWERED


@click.command()
@click.option("-m", "--message", help="What to say.  [default: what comes by standard input]")
@click.option(
    "--session",
    shell_complete=completes("sessions"),
    help="Say it in this session, by id or title.  [default: the terminal's]",
)
@debug_option
@json_option
def command(message: str | None, session: str | None, *, debug: bool, as_json: bool) -> None:
    """Send one message to the agent and print the reply.

    If no gateway runs, this process runs one for the exchange. With --session, open terminals keep their session.
    """
    if message is None and not sys.stdin.isatty():
        message = sys.stdin.buffer.read().decode(errors="replace").rstrip()
    if not message or not message.strip():
        raise Invalid("message", "it is blank", "Say something: -m TEXT, or by standard input.")
    config = config_here()
    with tracebacks(config.data) if debug else nullcontext():
        reply = asyncio.run(_chat(config, message, session))
    if as_json:
        print_json(reply)
    else:
        click.echo(printable(reply.text))
    if reply.state is not TurnState.ANSWERED:
        raise SegueError(f"The turn was {reply.state}, not answered. `segue doctor` and the log may say why.")


async def _chat(config: Config, message: str, name: str | None) -> ChatReply:
    session = None
    if name is not None:
        async with opened() as (store, host):
            session = (await named(store, host, name)).id
    id = uuid4().hex  # the same id with every gateway, so that the message counts once
    for _ in range(_GATEWAYS - 1):
        try:
            return await _exchange(config, message, session, id)
        except NoGateway:
            continue
    return await _exchange(config, message, session, id)


async def _exchange(config: Config, message: str, session: SessionId | None, id: str) -> ChatReply:
    # A script that names its session has a lane of its own, so the terminals keep theirs.
    own = OpenRequest(page=1, lane=session, begins=Begins.HERE, session=session) if session else OpenRequest(page=1)
    async with running(config), connected(config.data, own) as client:
        await _turned_to(client, session)
        await client.say(message, id)
        return await _answered(client, id)


async def _turned_to(client: Client, session: SessionId | None) -> None:
    """Wait until the window is open, on the named session if there is one."""
    async for frame in client.frames():
        if isinstance(frame, TranscriptFrame):
            if session is None or (frame.session is not None and frame.session.id == session):
                return
        elif isinstance(frame, RefusedFrame):
            raise SegueError(frame.text)
    raise _gone()


async def _answered(client: Client, id: str) -> ChatReply:
    more: list[str] = []
    asked: list[str] = []
    async for frame in client.frames():
        if isinstance(frame, InvitationFrame):
            more = [invitation(frame)]
        elif isinstance(frame, QuestionsFrame):
            asked = [f"{one.words}\n{listed(one.choices)}" for one in frame.questions if one.here]
        elif isinstance(frame, AnsweredFrame) and frame.id == id:
            said = [client.lines(answer.text, answer.files) for answer in frame.said]
            text = "\n\n".join([*(said or asked), *more])
            session = frame.session
            return ChatReply(
                text, session.id if session else None, session.title if session else "", frame.turn, frame.state
            )
    raise _gone()


def _gone() -> NoGateway:
    return NoGateway("The gateway has gone; what was said is kept and answered when it runs again: `segue serve`.")
