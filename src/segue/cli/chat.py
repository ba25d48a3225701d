"""`segue chat`: one message, and the reply to it."""

from __future__ import annotations

import asyncio
import getpass
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import uuid4

import click
import msgspec

from segue.changes.exchange.traces import TracedTurn, TurnState, notices, of_message
from segue.cli.gateway import SOCKET, gateway
from segue.cli.host import config_here, named, open_log, opened
from segue.cli.output import json_option, print_json, printable
from segue.cli.terminal.client import Client, NoGateway, connected
from segue.config import Config
from segue.core.lanes import Person
from segue.core.transcripts import Role
from segue.core.turns import TurnKind
from segue.core.values import SessionId, Value
from segue.errors import Invalid, SegueError
from segue.runtime.server.listeners import Listener, is_served
from segue.runtime.telemetry import logs
from segue.store import Store

_BY_ITSELF = frozenset({TurnKind.UNDO, TurnKind.REWIND, TurnKind.COMPRESS})
"""What the gateway does itself and says so, in no transcript."""
_GATEWAYS = 10
"""How many may go while we wait: another `segue chat` takes its own with it."""


class Reply(Value, frozen=True):
    """What came back."""

    text: str
    session: SessionId | None = None
    """None if a command was answered, which is in no session."""
    title: str = ""
    turn: int = 0
    state: TurnState = TurnState.ANSWERED


@click.command()
@click.option("-m", "--message", required=True, help="What to say.")
@click.option("--session", help="Say it in this session, by id or title.  [default: the terminal's]")
@json_option
def command(message: str, session: str | None, *, as_json: bool) -> None:
    """Say one thing to the agent and print the reply.

    If no gateway runs, one runs in this process for the exchange. With --session, open terminals stay where they are.
    """
    if not message.strip():
        raise Invalid("message", "it is blank", "Say something: -m TEXT.")
    reply = asyncio.run(_chat(config_here(), message, session))
    if as_json:
        print_json(reply)
    else:
        click.echo(printable(reply.text))
    if reply.state is not TurnState.ANSWERED:
        raise SegueError(f"The turn was {reply.state}, not answered. `segue doctor` and the log may say why.")


async def _chat(config: Config, message: str, name: str | None) -> Reply:
    async with opened(config) as (store, host):
        session = (await named(store, host, name)).id if name is not None else None
        id = uuid4().hex  # the same with every gateway, so that it is asked once
        for _ in range(_GATEWAYS - 1):
            try:
                return await _exchange(config, store, host, message, session, id)
            except NoGateway:
                continue
        return await _exchange(config, store, host, message, session, id)


async def _exchange(
    config: Config, store: Store, host: Person, message: str, session: SessionId | None, id: str
) -> Reply:
    async with _running(config), connected(config.data, _lane(session)) as client:
        await _turn_to(client, session)
        await client.say(message, id)
        return await _answered(client, store, host, id)


async def _turn_to(client: Client, session: SessionId | None) -> None:
    """Wait until the window is open, on that session if one is named."""
    asked = False
    async for frame in client.frames():
        if "session" in frame:
            if session is None or (frame["session"] or {}).get("id") == session:
                return
            if not asked:
                asked = True
                await client.resume(session)
        elif asked and "notice" in frame:
            raise SegueError(frame["notice"])


async def _answered(client: Client, store: Store, host: Person, id: str) -> Reply:
    """The reply to a message: whenever something is shown, it may be there."""
    accepted, notice = False, None
    async for frame in client.frames():
        accepted = accepted or frame.get("accepted") == id
        notice = frame.get("notice", notice)
        if not accepted:
            continue
        trace = await store.driver.read(of_message, id)
        if trace.turns and trace.turns[0].finished is not None:
            return await _reply(store, host, trace.turns[0])
        if not trace.turns and notice is not None:
            return Reply(notice)
    raise NoGateway("The gateway has gone; what was said is kept and answered when it runs again: `segue serve`.")


async def _reply(store: Store, host: Person, turn: TracedTurn) -> Reply:
    if turn.kind in _BY_ITSELF:
        said = await store.driver.read(notices, turn.session, turn.within)
    else:
        entries = [entry async for entry in store.entries(turn.session) if entry.turn == turn.within]
        said = [entry.text for entry in entries if entry.author.role is not Role.PERSON]
    text = "\n\n".join(said)
    session = await store.session(turn.session, host)
    return Reply(text, session.id, session.title, turn.turn, turn.state)


@asynccontextmanager
async def _running(config: Config) -> AsyncIterator[None]:
    """A gateway: the one that runs, else one of this process's own, for the terminal only."""
    if is_served(config.data / SOCKET):
        yield
        return
    alone = msgspec.structs.replace(config, accounts=())
    async with AsyncExitStack() as stack:
        handler = logs.start(stack.enter_context(open_log(config.data)), config.secrets)
        stack.callback(logging.getLogger().removeHandler, handler)
        try:
            await stack.enter_async_context(gateway(alone, Listener("127.0.0.1", 0)))
        except Invalid as error:
            if is_served(config.data / SOCKET):
                raise NoGateway("Another gateway began just now. Try again.") from error
            raise
        yield


def _lane(session: SessionId | None) -> str:
    return f"{getpass.getuser()}:{session}" if session else ""
