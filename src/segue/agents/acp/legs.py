"""Legs: what an ACP agent knows of a session of ours, and how a turn finds that again.

Law: the agent's view of a session is ours. Its own session is used again only if the last entry that it has seen is on
our path, and it is told what came since; a process whose memory of it is older than that reads it anew. A branch of
what it has seen is forked from it, where it can fork. After an undo, a rewind, a summary or a deletion it begins a new
one, and is told the transcript as it stands.
"""

import logging
from collections.abc import Sequence
from typing import Any

import msgspec
from acp.exceptions import RequestError
from acp.schema import EnvVariable, HttpHeader, HttpMcpServer, McpServerStdio
from msgspec.structs import replace

from segue.agents.acp.options import Options
from segue.agents.acp.process import Process
from segue.agents.acp.session import AcpSession
from segue.core.contracts.agents import AgentState, Work
from segue.core.transcripts import Entry
from segue.core.values import Value

log = logging.getLogger(__name__)


class Leg(Value, frozen=True):
    """The agent's own session, as it is kept with ours."""

    session: str
    folder: str
    process: str = ""
    """The process that has it in memory."""
    context: str = ""
    """The digest of the place and people that the agent was told of last."""
    cost: float = 0.0
    """The cost of it in dollars, as the agent told it last."""
    options: dict[str, str] = msgspec.field(default_factory=dict)
    """Its config options that people chose."""

    @property
    def note(self) -> AgentState:
        """The leg as it is kept."""
        return AgentState(msgspec.to_builtins(self))


def leg_of(state: AgentState | None) -> Leg | None:
    """The leg in a note; None if there is none, or one that another kind of agent of this name wrote."""
    try:
        return msgspec.convert(state.value, Leg) if state is not None else None
    except msgspec.ValidationError:
        return None


async def open_leg(process: Process, work: Work, folder: str) -> tuple[Leg, AcpSession, Sequence[Entry] | None]:
    """The agent's own session for a turn, and what it hasn't seen: None if it is new, and knows nothing."""
    had, since = leg_of(work.state), _unseen(work, work.state)
    if had is not None and since is not None and had.folder == folder:
        session = await _again(process, had, work)
        if session is not None:
            return replace(had, process=process.nonce), session, since
    past, since = leg_of(work.branched), _unseen(work, work.branched)
    if had is None and past is not None and since is not None and past.folder == folder:
        session = await _forked(process, past, work)
        if session is not None:
            return Leg(session.id, folder, process.nonce, cost=past.cost, options=past.options), session, since
    opened = await process.connection.new_session(folder, mcp_servers=_servers(process, work))
    chosen = (had or past or Leg("", "")).options
    session = await _taken(process, opened.session_id, opened, chosen)
    return Leg(session.id, folder, process.nonce, options=chosen), session, None


def _unseen(work: Work, state: AgentState | None) -> Sequence[Entry] | None:
    """The entries after the last that the agent has seen by a note; None if it has to be told everything."""
    if state is None or state.moved or state.tip is None:
        return None
    for n in reversed(range(len(work.transcript))):
        if work.transcript[n].tip == state.tip:
            return work.transcript[n + 1 :]
    return None


async def _again(process: Process, leg: Leg, work: Work) -> AcpSession | None:
    """The session that the agent had: in memory, resumed or loaded; None if it can't be had again."""
    if leg.process == process.nonce and leg.session in process.sessions:
        return process.session(leg.session)
    old = process.sessions.pop(leg.session, None)
    if not process.goes_on or (old is not None and not process.closes):
        return None
    connection, servers = process.connection, _servers(process, work)
    opening = connection.resume_session if process.resumes else connection.load_session
    try:
        if old is not None:
            # Another process went on with it, and this one would take what it has in memory for the whole.
            await connection.close_session(leg.session)
        opened: Any = await opening(session_id=leg.session, cwd=leg.folder, mcp_servers=servers)
    except RequestError as error:
        log.info("%s doesn't know its session any more (%s): it gets the transcript", process.name, error)
        return None
    return await _taken(process, leg.session, opened, leg.options)


async def _forked(process: Process, leg: Leg, work: Work) -> AcpSession | None:
    """A fork of the session that the agent has of what ours branched off; None if it can't be had."""
    known = process.sessions.get(leg.session) if leg.process == process.nonce else None
    if not process.forks or known is None or known.busy:
        # One that this process doesn't have may be in the middle of a turn elsewhere.
        return None
    try:
        servers = _servers(process, work)
        opened = await process.connection.fork_session(leg.session, leg.folder, mcp_servers=servers)
    except RequestError as error:
        log.info("%s doesn't fork its session (%s): it gets the transcript", process.name, error)
        return None
    return await _taken(process, opened.session_id, opened, leg.options)


async def _taken(process: Process, id: str, opened: Any, chosen: dict[str, str]) -> AcpSession:
    """A session that was just opened, with what people chose in it."""
    session = process.session(id)
    session.opened(opened)
    await Options(process, session).restore(chosen)
    return session


def _servers(process: Process, work: Work) -> list[Any]:
    """The gateway's tools, as a server of MCP in the form that the agent takes; none where they aren't served."""
    served, can = work.tool_server, process.can.mcp_capabilities
    if served is None or not work.tools.offered:
        return []
    if can is not None and can.http:
        header = HttpHeader(name="Authorization", value=f"Bearer {served.token}")
        return [HttpMcpServer(type="http", name="segue", url=served.url, headers=[header])]
    [command, *arguments], env = served.command, [EnvVariable(name=n, value=v) for n, v in served.environment.items()]
    return [McpServerStdio(name="segue", command=command, args=arguments, env=env)]
