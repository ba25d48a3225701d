"""One process of an ACP agent, on which many sessions talk at once.

Law: a process is used until it ends or is retired. A retired one finishes the turns that it has and gets no more; who
comes next starts another. What a process breaks, by ending or by writing garbage, ends its own turns with words that
say so, and never those of another.
"""

import asyncio
import logging
import os
import signal
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import msgspec
from acp import PROTOCOL_VERSION
from acp.client.connection import ClientSideConnection
from acp.exceptions import RequestError
from acp.helpers import ContentBlock
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    ClientCapabilities,
    CreateElicitationResponse,
    DeniedOutcome,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    ElicitationUrlCapabilities,
    Implementation,
    PermissionOption,
    PromptCapabilities,
    RequestPermissionResponse,
    SessionCapabilities,
    SessionNotification,
    ToolCallUpdate,
)
from pydantic import ValidationError as PydanticError

from segue.agents.acp.lines import LONGEST_LINE, ProcessLines
from segue.agents.acp.session import AcpSession, HearsSession
from segue.agents.acp.subagents import DRAFTED, Announced, Drafted
from segue.core.values import INHERITED
from segue.errors import AgentFailed

log = logging.getLogger(__name__)

_STEER = "session/steering"
"""An extension of the protocol's: what goes into a prompt that runs."""
_NOT_SIGNED_IN = -32000
"""The protocol's code of an error: one has to sign in first."""
_IDENTITY, _NOBODY = "auth/status_update", "none"
"""An extension of the protocol's, which Claude Code has: whom the agent is signed in as."""
_IDENTITY_COMES = 10.0
"""Seconds in which an agent that tells it does."""
_LAST_WORDS = 20
MOST_SUBAGENTS = 1000
"""Sub-agents of one process that are known by the session which they work for."""
_FAREWELL = 2.0
"""Seconds in which a process that is told to end may end by itself."""


class Process:
    """A process of the agent's that runs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nonce = uuid4().hex
        """Tells it from every other process: what this one has in memory, another has not."""
        self.can = AgentCapabilities()
        self.steers = False
        """Whether a prompt that runs takes in more, by an extension of the protocol that agents tell of."""
        self.info: Implementation | None = None
        self._sign_ins: list[str] = []
        """The ways to sign in that it offers."""
        self._identity: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """The kind of account that it is signed in with, once it has told that."""
        self.sessions: dict[str, AcpSession] = {}
        """Those that it has open, the longest unused first."""
        self._above: dict[str, str] = {}
        """The sessions of sub-agents, each with that of whoever gave it work."""
        self.retired = False
        self.ending = False
        self.turns = 0
        """Turns that run on it."""
        self._lines: ProcessLines
        self._process: asyncio.subprocess.Process
        self._reading: asyncio.Task[None]
        self._last_resort: weakref.finalize[[int], Process]
        self._said: deque[str] = deque(maxlen=_LAST_WORDS)
        self.connection: ClientSideConnection

    @classmethod
    async def start(cls, command: tuple[str, ...], env: Mapping[str, str], folder: Path, seconds: float) -> "Process":
        """Start a program and shake hands with it; raises `AgentFailed` if that can't be done."""
        name = Path(command[0]).name
        given = {key: os.environ[key] for key in INHERITED if key in os.environ} | dict(env)
        pipe = asyncio.subprocess.PIPE
        self = cls(name)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, stderr=pipe, limit=LONGEST_LINE, env=given, cwd=folder,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            problem = f"{command[0]} can't be started ({error.strerror})."
            fix = "Install it, or see `command` and `folder` in its table in segue.toml."
            raise AgentFailed(problem, fix, passes=False) from error
        assert self._process.stdin is not None  # noqa: S101 -- it was asked for
        assert self._process.stdout is not None  # noqa: S101
        self._last_resort = weakref.finalize(self, _end_group, self._process.pid)
        self._reading = asyncio.create_task(self._read_errors(), name=f"stderr of {name}")
        ears = _Ears(weakref.ref(self))
        self._lines = ProcessLines(ears.heard, self._process.stdout, self._process.stdin)
        self.connection = ClientSideConnection(cast("Client", ears), self._lines, use_unstable_protocol=True)
        try:
            async with asyncio.timeout(seconds):
                met = await self.connection.initialize(PROTOCOL_VERSION, _OWN, _ME)
        except BaseException as error:
            await self.end()
            if (explained := self.explained(error)) is error:
                raise
            raise explained from error
        self.can, self.info = met.agent_capabilities or AgentCapabilities(), met.agent_info
        self._sign_ins = [method.name for method in met.auth_methods or []]
        steering = (met.field_meta or {}).get("steering")
        self.steers = isinstance(steering, dict) and steering.get("supported") is True
        return self

    @property
    def usable(self) -> bool:
        """Whether another turn may run on it."""
        return not self.retired and not self._lines.over and self._process.returncode is None

    @property
    def pid(self) -> int:
        """Its process id, which is the id of its group too."""
        return self._process.pid

    @property
    def abilities(self) -> str:
        """The name of the program, and what it can, in words."""
        info, prompts = self.info, self.takes
        takes = [name for name in ("image", "audio") if getattr(prompts, name)]
        takes += ["files"] if prompts.embedded_context else []
        words = [
            f"{info.title or info.name} {info.version}" if info is not None else self.name,
            "goes on with its sessions after a restart" if self.goes_on else "is told the transcript after a restart",
            f"takes {', '.join(takes)}" if takes else "takes text alone",
            *(["branches its sessions"] if self.forks else []),
            *(["takes in what is said while it answers"] if self.steers else []),
        ]
        return "; ".join(words)

    @property
    def takes(self) -> PromptCapabilities:
        """The content that it takes beside text."""
        return self.can.prompt_capabilities or PromptCapabilities()

    async def steer(self, session: AcpSession, blocks: Sequence[ContentBlock]) -> bool:
        """Put more into a prompt that runs; False if none runs any more."""
        prompt = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in blocks]
        more = {"sessionId": session.id, "prompt": prompt, "_meta": {"steering": {"idleBehavior": "promptRequired"}}}
        match await self.connection.ext_method(_STEER, more):
            case {"outcome": "injected"}:
                return True
            case _:
                return False

    @property
    def resumes(self) -> bool:
        """Whether it goes on with its sessions after a restart, and says nothing of them again."""
        return self._able.resume is not None

    @property
    def goes_on(self) -> bool:
        """Whether it goes on with its sessions after a restart."""
        return self.resumes or bool(self.can.load_session)

    @property
    def forks(self) -> bool:
        """Whether it can begin a session with all that another one knows."""
        return self._able.fork is not None

    @property
    def closes(self) -> bool:
        """Whether it can put a session out of its memory."""
        return self._able.close is not None

    @property
    def _able(self) -> SessionCapabilities:
        return self.can.session_capabilities or SessionCapabilities()

    def session(self, id: str) -> AcpSession:
        """A session of the agent's, which is used now."""
        session = self.sessions[id] = self.sessions.pop(id) if id in self.sessions else AcpSession(id)
        return session

    def asker(self, id: str) -> tuple[AcpSession, str]:
        """The session of the agent's in which something is told or asked, and the id of the sub-agent that does."""
        root = self._root(id)
        if root not in self.sessions:
            self.sessions[root] = AcpSession(root)
        return self.sessions[root], "" if root == id else id

    def _root(self, id: str) -> str:
        """The session for which another one works, at whatever depth; itself if it works for none."""
        while id in self._above:
            id = self._above[id]
        return id

    def heard(self, params: Any) -> HearsSession | None:
        """Take in what it tells of a session, in the order in which it was written; returns the turn that it is for."""
        try:
            id, update = _read(params)
        except (msgspec.ValidationError, PydanticError, KeyError, TypeError):
            # Its words may be anybody's, so they aren't logged.
            log.info("%s told what this version doesn't know", self.name)
            return None
        if isinstance(update, Announced) and self._is_new(update.session_id, id):
            self._drop_unused()
            self._above[update.session_id] = id
        session, by = self.asker(id)
        session.hear(update, by)
        return session.turn

    def _drop_unused(self) -> None:
        """Make room for one more sub-agent: those of sessions in which no turn runs go first, then the oldest."""
        if len(self._above) < MOST_SUBAGENTS:
            return
        busy = {id for id, session in self.sessions.items() if session.busy}
        idle = [id for id in self._above if self._root(id) not in busy]
        for id in idle or list(self._above)[:1]:
            del self._above[id]

    def _is_new(self, child: str, parent: str) -> bool:
        """Whether a sub-agent may be counted as one of another session: it has one parent, and isn't its own."""
        return child not in self._above and child not in self.sessions and self.asker(parent)[0].id != child

    def spare(self, most: int) -> list[AcpSession]:
        """The sessions to be closed, so that no more than so many stay open: those that were unused for longest."""
        if not self.closes or not self.goes_on or not self.usable:
            return []
        # Those that turns are about to use are the newest.
        old = list(self.sessions.values())[: max(0, len(self.sessions) - max(most, self.turns))]
        return [session for session in old if not session.busy]

    @property
    def commands(self) -> set[str]:
        """The slash commands that its sessions told of."""
        return {name for session in self.sessions.values() for name in session.commands}

    def explained(self, error: BaseException) -> BaseException:
        """An error of the protocol's in words, with what its host can do; others as they are."""
        match error:
            case RequestError(code=code) if code == _NOT_SIGNED_IN:
                return AgentFailed(f"{self.name} isn't signed in.", self._sign_in, passes=False)
            case RequestError():
                problem = f"{self.name} says: {_brief(error)}"
                return AgentFailed(problem, "`segue doctor` starts it and says what it can.", passes=True)
            case ConnectionError():
                said = f" Its last words: {self._said[-1][:300]}" if self._said else ""
                why = self._lines.over or "it ended"
                return AgentFailed(f"{self.name} is gone: {why}.{said}", "It is started again.", passes=True)
            case TimeoutError():
                fix = "It is started again; see `start` in its table in segue.toml."
                return AgentFailed(f"{self.name} doesn't answer.", fix, passes=True)
            case ValueError():
                problem = f"{self.name} wrote what ACP doesn't know ({type(error).__name__})."
                return AgentFailed(problem, "See whether it has a newer version.", passes=True)
            case _:
                return error

    @property
    def _sign_in(self) -> str:
        """How its host signs in with it."""
        ways = f" (it offers: {', '.join(self._sign_ins)[:200]})" if self._sign_ins else ""
        return f"Sign in once with the program itself{ways}, or give it its key by `env` in its table in segue.toml."

    async def try_session(self, folder: str, seconds: float) -> None:
        """Open a session and close it; raises `AgentFailed` if it can't be opened, as without a sign-in."""
        try:
            async with asyncio.timeout(seconds):
                opened = await self.connection.new_session(folder, mcp_servers=[])
                if self.closes:
                    await self.connection.close_session(opened.session_id)
        except (RequestError, ConnectionError, TimeoutError, PydanticError) as error:
            if isinstance(error, RequestError) and error.code != _NOT_SIGNED_IN:
                fix = f"If nobody has signed in: {self._sign_in}"
                raise AgentFailed(f"{self.name} opens no session: {_brief(error)}", fix, passes=False) from error
            raise self.explained(error) from error
        if await self._told_identity() == _NOBODY:
            raise AgentFailed(f"{self.name} isn't signed in.", self._sign_in, passes=False)

    async def _told_identity(self) -> str:
        """The kind of account that it is signed in with; empty if it doesn't tell."""
        if "authStatus" in (self.can.field_meta or {}):
            with suppress(TimeoutError):
                async with asyncio.timeout(_IDENTITY_COMES):
                    return await asyncio.shield(self._identity)
        return ""

    def identified(self, told: Any) -> None:
        """It told whom it is signed in as."""
        match told:
            case {"authStatus": {"kind": str(kind)}} if not self._identity.done():
                self._identity.set_result(kind)
            case _:
                """Nothing that this version knows, or nothing new."""

    def retire(self) -> None:
        """Give it no more turns; it ends once those that it has are over."""
        self.retired = True

    async def last_words(self) -> None:
        """Give what it wrote before it ended a moment to come."""
        if self._lines.over:
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await asyncio.shield(self._reading)

    async def end(self) -> None:
        """End it, and all that it started."""
        self.retired = True
        try:
            await self.connection.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(_FAREWELL):
                    await self._process.wait()
        finally:
            if self._last_resort.detach():
                _end_group(self._process.pid)
            self._reading.cancel()
        await self._process.wait()

    async def _read_errors(self) -> None:
        """Keep the last that it writes beside the protocol."""
        assert self._process.stderr is not None  # noqa: S101 -- it was asked for
        while True:
            try:
                line = await self._process.stderr.readline()
            except ValueError:
                continue  # a line without an end
            if not line:
                return
            if text := line.decode(errors="replace").strip():
                self._said.append(text)
                log.debug("%s: %s", self.name, text)


_ME = Implementation(name="segue", title="Segue", version="1")
_OWN = ClientCapabilities(
    elicitation=ElicitationCapabilities(form=ElicitationFormCapabilities(), url=ElicitationUrlCapabilities())
)
"""The agent reads and writes files by itself, and runs commands by itself."""


class _Ears:
    """The client of the protocol: hears what the agent tells and asks, and finds the turn that it is for."""

    def __init__(self, process: "weakref.ref[Process]") -> None:
        self._process = process

    async def heard(self, params: Any) -> None:
        """The agent told something of a session."""
        process = self._process()
        turn = process.heard(params) if process is not None else None
        del process  # whoever waits keeps no process alive
        if turn is not None:
            await turn.room()

    def _asker(self, id: str) -> tuple[AcpSession | None, str]:
        process = self._process()
        return process.asker(id) if process is not None else (None, "")

    async def request_permission(
        self,
        session_id: str,
        tool_call: ToolCallUpdate,
        options: list[PermissionOption],
        **_: Any,
    ) -> RequestPermissionResponse:
        """The agent asks whether it may do something; outside a turn it may not."""
        session, by = self._asker(session_id)
        if session is None or session.turn is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return await session.turn.permit(tool_call, options, by)

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> CreateElicitationResponse:
        """The agent wants to know something."""
        session = self._asker(getattr(mode, "session_id", "") or "")[0]
        if session is None or session.turn is None:
            raise RequestError.invalid_params({"details": "nobody can be asked outside a turn"})
        return await session.turn.elicit(message, mode)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """The agent told something beside the protocol."""
        if method == _IDENTITY and (process := self._process()) is not None:
            process.identified(params)

    async def complete_elicitation(self, elicitation_id: str, **_: Any) -> None:
        """What was asked for at an address is done; the agent goes on by itself."""


def _read(params: Any) -> tuple[str, Any]:
    """The session of an update, and what it says."""
    if params["update"]["sessionUpdate"] in DRAFTED:
        return str(params["sessionId"]), msgspec.convert(params["update"], Drafted)
    note = SessionNotification.model_validate(params)
    return note.session_id, note.update


def _brief(error: RequestError) -> str:
    """An error of the agent's, in one line."""
    more = error.data.get("details") or error.data.get("message") if isinstance(error.data, dict) else error.data
    return " ".join(f"{error}{f' ({more})' if more else ''}".split())[:300]


def _end_group(pid: int) -> None:
    """Kill a process with all that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
