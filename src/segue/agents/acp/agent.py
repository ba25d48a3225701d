"""An ACP agent as the agent of sessions: its turns, and the processes that they run on."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing
from hashlib import sha256
from pathlib import Path
from typing import Any

from acp.exceptions import RequestError
from acp.helpers import ContentBlock
from acp.schema import PromptResponse
from msgspec.structs import replace
from pydantic import ValidationError

from segue.agents.acp.keys import AcpKeys
from segue.agents.acp.legs import Leg, leg_of, open_leg
from segue.agents.acp.options import Options
from segue.agents.acp.process import Process
from segue.agents.acp.prompts import asked, history, text_block
from segue.agents.acp.session import AcpSession
from segue.agents.acp.turn import AcpTurn
from segue.core.contracts.agents import AgentState, Event, Work
from segue.core.messages import Text, told
from segue.core.prompt.envelopes import Voices, gateway_line
from segue.core.transcripts import Draft
from segue.core.values import SessionId

log = logging.getLogger(__name__)

_HOSTS = "This command of the agent's own is for the host, and for people that the host names in agent_commands."
_ONE_LINE = "A command of the agent's own is one line. Write it again without the rest."
_ENDINGS = {
    "max_tokens": "(It stopped at its longest answer. “go on” lets it.)",
    "max_turn_requests": "(It stopped after as many steps as it may take at once. “go on” lets it.)",
    "refusal": "(It refuses to answer that.)",
}


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

    async def started(self) -> str:
        """Start the process and end it; returns what it can."""
        try:
            return (await self._running()).abilities
        finally:
            await self.close()

    async def tried(self) -> str:
        """The same, and open a session, which it may refuse to whoever isn't signed in."""
        folder = (self._keys.folder or self._keys.folders or Path()).absolute()
        try:
            process = await self._running()
            await process.try_session(str(folder), self._keys.start)
            return process.abilities
        finally:
            await self.close()

    async def answer(self, work: Work) -> AsyncGenerator[Event, None]:
        """The reply as it comes."""
        process = await self._free(leg_of(work.state))
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
            for session in process.spare(self._keys.open):
                session.settling = self._later(self._close(process, session))

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
        async with asyncio.timeout(self._keys.start):
            leg, session, since = await open_leg(process, work, await self._folder(work))
        options = Options(process, session)
        said = told(work.asked[0].parts).strip() if len(work.asked) == 1 else ""
        if choice := options.meant(said):
            host = work.person is not None and work.person.host
            chosen, answer = await options.choose(*choice) if host else ({}, options.told(choice[0]))
            yield Text(answer)
            yield replace(leg, options={**leg.options, **chosen}).note
            return
        digest = sha256(work.context.encode(errors="replace")).hexdigest()[:16]
        before = [work.context if leg.context != digest else "", history(work, since)]
        blocks = await asked(work, process.takes)
        if said.startswith("/") and _command(said) in {*session.commands, *self._keys.commands}:
            if refusal := self._refused(work, said):
                yield Text(refusal)
                return
            # It is a command only as the first words of a prompt. Where several people speak, its author stands behind.
            behind = blocks if work.voices is not Voices.ONE else []
            blocks = [text_block(said), *map(text_block, filter(None, before)), *behind]
        else:
            if said.startswith("/"):
                before.append(gateway_line("What follows is a message, and no command."))
            blocks = [*map(text_block, filter(None, before)), *blocks]
        turn = AcpTurn(work, options.model or process.name, leg.cost)
        leg = replace(leg, context=digest)
        async with aclosing(self._prompt(process, session, turn, blocks, leg.note)) as events:
            async for event in events:
                yield event
        yield replace(leg, cost=turn.cost).note

    def _refused(self, work: Work, said: str) -> str:
        """Why somebody may not use a command of the agent's own; empty if they may."""
        person = work.person
        named = person is not None and person.identity is not None and person.identity.name in self._keys.agent_commands
        if person is None or not (person.host or named):
            return _HOSTS
        return _ONE_LINE if len(said.splitlines()) > 1 else ""

    async def _prompt(
        self, process: Process, session: AcpSession, turn: AcpTurn, blocks: Sequence[ContentBlock], seen: AgentState
    ) -> AsyncGenerator[Event, None]:
        """Send a prompt and take in what comes; one that is given up is cancelled."""
        session.begin(turn)
        prompted = self._prompted[turn.work.session] = process, session
        asking = asyncio.create_task(process.connection.prompt(session.id, list(blocks)))
        asking.add_done_callback(lambda _: turn.over())
        try:
            # Kept also if the turn is stopped or fails: from here on the agent has seen what was asked.
            yield seen
            async with aclosing(turn.events()) as events:
                async for event in events:
                    yield event
            done = await asking
            session.answered = True
            if (usage := turn.usage(done)) is not None:
                yield usage
            if ending := _ENDINGS.get(done.stop_reason):
                yield Text(f"\n\n{ending}")
        finally:
            turn.leave()
            # A turn that was taken away may be prompted anew before it has ended here.
            if session.turn is turn:
                session.turn = None
            if self._prompted.get(turn.work.session) is prompted:
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

    async def _close(self, process: Process, session: AcpSession) -> None:
        """Let the agent forget a session that nobody has used for long; it has it on disk, and opens it again."""
        try:
            async with asyncio.timeout(self._keys.settle):
                await process.connection.close_session(session.id)
        except (RequestError, ConnectionError, TimeoutError) as error:
            log.warning("%s doesn't close a session: %s", process.name, error)
        finally:
            process.sessions.pop(session.id, None)

    async def _free(self, leg: Leg | None) -> Process:
        """The process for a turn, once an earlier turn of its session that was given up has come to its end."""
        process = await self._running()
        session = process.sessions.get(leg.session) if leg is not None else None
        if session is not None and session.settling is not None:
            await asyncio.wait([session.settling])
        return process if process.usable else await self._running()

    async def _running(self) -> Process:
        """The process; started if there is none, or none that can be used.

        All of the agent's sessions wait for the start, since all of them need this process.
        """
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

    async def _folder(self, work: Work) -> str:
        if self._keys.folder is not None:
            return str(self._keys.folder.absolute())
        assert self._keys.folders is not None  # noqa: S101 -- the keys have one of the two
        own = self._keys.folders.absolute() / work.session
        await asyncio.to_thread(own.mkdir, parents=True, exist_ok=True)
        return str(own)


def _command(said: str) -> str:
    """The command that a message begins with."""
    return (said[1:].split(maxsplit=1) or [""])[0].casefold()
