"""An ACP agent as the agent of sessions.

Law: the agent's view of a session is ours. Its own session is used again only if the last entry that it has seen is on
our path, and it is told what came since; after an undo, a rewind, a summary or a branch it begins a new one, and is
told the transcript as it stands.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from acp.exceptions import RequestError
from acp.helpers import ContentBlock
from acp.schema import EnvVariable, HttpHeader, HttpMcpServer, McpServerStdio, PromptResponse
from msgspec.structs import replace
from pydantic import ValidationError

from segue.agents.acp.keys import AcpKeys
from segue.agents.acp.options import Options
from segue.agents.acp.process import AcpSession, Process
from segue.agents.acp.prompts import asked, history, text_block, unseen
from segue.agents.acp.turn import AcpTurn
from segue.core.contracts.agents import AgentState, Event, Work
from segue.core.messages import Text, told
from segue.core.transcripts import Draft, Entry
from segue.core.values import SessionId, Value

log = logging.getLogger(__name__)

_ENDINGS = {
    "max_tokens": "(It stopped at its longest answer. “go on” lets it.)",
    "max_turn_requests": "(It stopped after as many steps as it may take at once. “go on” lets it.)",
    "refusal": "(It refuses to answer that.)",
}


class Leg(Value, frozen=True):
    """The agent's own session, as it is kept with ours."""

    session: str
    folder: str
    process: str = ""
    """The process that has it in memory."""
    context: str = ""
    """The digest of the place and people that the agent was told of last."""
    cost: float = 0.0
    options: dict[str, str] = msgspec.field(default_factory=dict)
    """Its config options that people chose."""


class AcpAgent:
    """Has turns answered by a program that speaks ACP: one process, any number of sessions."""

    def __init__(self, keys: AcpKeys) -> None:
        self._keys = keys
        self._env = {name: secret.reveal() for name, secret in keys.env.items()}
        self.gateway_tools = keys.tools
        self.process: Process | None = None
        """The process that takes turns now, if there is one."""
        self._starting = asyncio.Lock()
        self._ending: set[asyncio.Task[None]] = set()
        self._known: set[str] = set()
        self._prompted: dict[SessionId, tuple[Process, AcpSession]] = {}
        """The agent's sessions in which a prompt runs, by ours."""

    @property
    def commands(self) -> set[str]:
        """The words of its slash commands, as far as they were told."""
        if self.process is not None:
            self._known |= self.process.commands
        return {*self._keys.commands, *Options.WORDS, *self._known}

    async def close(self) -> None:
        """End the process."""
        process, self.process = self.process, None
        if process is not None:
            await process.end()
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def tried(self) -> str:
        """Start the process and end it; returns what it can."""
        try:
            return (await self._running()).abilities
        finally:
            await self.close()

    async def answer(self, work: Work) -> AsyncGenerator[Event, None]:
        """The reply as it comes."""
        process = await self._free(_leg(work.state))
        process.turns += 1
        try:
            async with aclosing(self._turn(process, work)) as events:
                async for event in events:
                    yield event
        except (RequestError, ConnectionError, TimeoutError, ValidationError) as error:
            if isinstance(error, ConnectionError | TimeoutError):
                process.retire()
                await process.last_words()
            raise process.explained(error) from error
        finally:
            process.turns -= 1
            if not process.usable:
                self._let_go(process)

    async def steer(self, work: Work, more: tuple[Draft, ...]) -> bool:
        """Give a running prompt what its person said meanwhile, if the agent takes that."""
        process, session = self._prompted.get(work.session, (None, None))
        if process is None or session is None or not process.steers:
            return False
        blocks = await asked(work, process.takes, more)
        try:
            async with asyncio.timeout(self._keys.settle):
                return await process.steer(session, blocks)
        except (RequestError, ConnectionError, TimeoutError) as error:
            log.warning("%s takes nothing in while it answers: %s", process.name, error)
            return False

    async def _turn(self, process: Process, work: Work) -> AsyncGenerator[Event, None]:
        """One turn in the agent's own session."""
        leg, session, since = await self._open(process, work)
        options = Options(process, session)
        said = told(work.asked[0].parts).strip() if len(work.asked) == 1 else ""
        if choice := options.meant(said):
            host = work.person is not None and work.person.host
            chosen, answer = await options.choose(*choice) if host else ({}, options.told(choice[0]))
            yield Text(answer)
            yield _note(replace(leg, options={**leg.options, **chosen}))
            return
        digest = sha256(work.context.encode(errors="replace")).hexdigest()[:16]
        before = [work.context if leg.context != digest else "", history(work, since)]
        blocks = await asked(work, process.takes)
        if said.startswith("/") and said[1:].partition(" ")[0].casefold() in session.commands:
            # It is a command only as the first words of a prompt.
            blocks = [text_block(said), *map(text_block, filter(None, before))]
        else:
            blocks = [*map(text_block, filter(None, before)), *blocks]
        turn = AcpTurn(work, options.model or process.name, leg.cost)
        leg = replace(leg, context=digest)
        async with aclosing(self._prompt(process, session, turn, blocks, _note(leg))) as events:
            async for event in events:
                yield event
        yield _note(replace(leg, cost=turn.cost))

    async def _prompt(
        self, process: Process, session: AcpSession, turn: AcpTurn, blocks: Sequence[ContentBlock], seen: AgentState
    ) -> AsyncGenerator[Event, None]:
        """Send a prompt and take in what comes; one that is given up is cancelled."""
        session.turn = turn
        self._prompted[turn.work.session] = process, session
        asking = asyncio.create_task(process.connection.prompt(session.id, list(blocks)))
        asking.add_done_callback(lambda _: turn.over())
        try:
            # Kept also if the turn is stopped or fails: from here on the agent has seen what was asked.
            yield seen
            async with aclosing(turn.events()) as events:
                async for event in events:
                    yield event
            done = await asking
            if (usage := turn.usage(done)) is not None:
                yield usage
            if ending := _ENDINGS.get(done.stop_reason):
                yield Text(f"\n\n{ending}")
        finally:
            session.turn = None
            del self._prompted[turn.work.session]
            if not asking.done():
                turn.cancel()
                session.settling = self._later(self._settle(process, session, asking))

    async def _settle(self, process: Process, session: AcpSession, asking: "asyncio.Task[PromptResponse]") -> None:
        """Cancel a prompt; a process that doesn't end it gets no more turns, and is ended after its last."""
        try:
            async with asyncio.timeout(self._keys.settle):
                await process.connection.cancel(session.id)
                await asyncio.wait([asking])
        except (TimeoutError, ConnectionError):
            process.retire()
            log.warning("%s doesn't end a turn that was stopped; others get a new process", process.name)
            self._let_go(process)
        finally:
            asking.cancel()

    async def _free(self, leg: Leg | None) -> Process:
        """The process for a turn, once an earlier turn of its session that was given up has come to its end."""
        process = await self._running()
        session = process.sessions.get(leg.session) if leg is not None else None
        if session is not None and session.settling is not None:
            await asyncio.wait([session.settling])
        return process if process.usable else await self._running()

    async def _running(self) -> Process:
        """The process; started if there is none, or none that can be used."""
        async with self._starting:
            if self.process is None or not self.process.usable:
                keys = self._keys
                folder = keys.folder or keys.folders or Path()
                await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
                if self.process is not None:
                    self.process.retire()
                    self._let_go(self.process)
                self.process = await Process.start(keys.command, self._env, folder, keys.start)
            return self.process

    def _let_go(self, process: Process) -> None:
        """End a process that is of no more use, once its last turn is over."""
        if self.process is process:
            self._known |= process.commands
            self.process = None
        if not process.turns and not process.ending:
            process.ending = True
            _ = self._later(process.end())

    def _later(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Do something behind the turns; `close` waits for it."""
        task = asyncio.create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    async def _open(self, process: Process, work: Work) -> tuple[Leg, AcpSession, Sequence[Entry] | None]:
        """The agent's own session for a turn, and what it hasn't seen: None if it is new, and knows nothing."""
        had, since = _leg(work.state), unseen(work)
        folder = await self._folder(work)
        async with asyncio.timeout(self._keys.start):
            if had is not None and since is not None and had.folder == folder:
                session = await self._again(process, had, work)
                if session is not None:
                    return replace(had, process=process.nonce), session, since
            opened = await process.connection.new_session(folder, mcp_servers=_servers(process, work))
            session = process.session(opened.session_id)
            session.opened(opened)
            chosen = had.options if had is not None else {}
            await Options(process, session).restore(chosen)
        return Leg(session.id, folder, process.nonce, options=chosen), session, None

    async def _again(self, process: Process, leg: Leg, work: Work) -> AcpSession | None:
        """The session that the agent had: in memory, resumed or loaded; None if it can't be had again."""
        if leg.process == process.nonce and leg.session in process.sessions:
            return process.sessions[leg.session]
        connection, can = process.connection, process.can
        resumes = can.session_capabilities is not None and can.session_capabilities.resume is not None
        if not resumes and not can.load_session:
            return None
        try:
            opening = connection.resume_session if resumes else connection.load_session
            servers = _servers(process, work)
            opened: Any = await opening(session_id=leg.session, cwd=leg.folder, mcp_servers=servers)
        except RequestError as error:
            log.info("%s doesn't know its session any more (%s): it gets the transcript", process.name, error)
            return None
        session = process.session(leg.session)
        session.opened(opened)
        await Options(process, session).restore(leg.options)
        return session

    async def _folder(self, work: Work) -> str:
        if self._keys.folder is not None:
            return str(self._keys.folder.absolute())
        assert self._keys.folders is not None  # noqa: S101 -- the keys have one of the two
        own = self._keys.folders.absolute() / work.session
        await asyncio.to_thread(own.mkdir, parents=True, exist_ok=True)
        return str(own)


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


def _note(leg: Leg) -> AgentState:
    return AgentState(msgspec.to_builtins(leg))


def _leg(state: AgentState | None) -> Leg | None:
    """The leg in a note; None if there is none, or one that another kind of agent of this name wrote."""
    try:
        return msgspec.convert(state.value, Leg) if state is not None else None
    except msgspec.ValidationError:
        return None
