"""Segue as an agent of ACP: an editor lists its person's sessions, opens them, and talks in them.

Law: an ACP session goes by the id of the session of Segue that it was opened on. Commands that turn to another session,
such as /branch, turn this conversation of the editor's; opened by its id again, it shows the first one.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, cast
from uuid import uuid4

from acp import PROTOCOL_VERSION, RequestError, run_agent
from acp.helpers import ContentBlock
from acp.interfaces import Agent, Client
from acp.schema import (
    AgentCapabilities,
    CloseSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
)

from segue import __version__
from segue.changes.exchange.traces import TurnState
from segue.core.values import SessionId
from segue.errors import Refusal, Refused, SegueError
from segue.runtime.editors.conversation import Conversation, WindowWire
from segue.runtime.editors.wire import Pipe
from segue.runtime.windows.frames import (
    LISTED,
    MOST,
    Begins,
    NoticeFrame,
    OpenRequest,
    SessionsFrame,
    SessionsRequest,
    ShownSession,
)
from segue.runtime.windows.window import not_yours

OpenWindow = Callable[[OpenRequest], Awaitable[WindowWire]]
_LIST = "list"
"""The lane of a window that only lists sessions."""
_CLOSED = 15.0
"""Seconds for which the end waits for windows to close."""


class EditorAgent:
    """One editor's agent."""

    def __init__(self, open_window: OpenWindow) -> None:
        self._open = open_window
        self._editor: Client
        self._conversations: dict[str, Conversation] = {}

    def on_connect(self, conn: Client) -> None:
        """Take note of the editor."""
        self._editor = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        """Say what can be done here."""
        offers = SessionCapabilities(
            list=SessionListCapabilities(), resume=SessionResumeCapabilities(), close=SessionCloseCapabilities()
        )
        return InitializeResponse(
            protocol_version=min(protocol_version, PROTOCOL_VERSION),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, audio=True, embedded_context=True),
                session_capabilities=offers,
            ),
            agent_info=Implementation(name="segue", title="Segue", version=__version__),
            auth_methods=[],
        )

    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> ListSessionsResponse:
        """The person's own sessions of all platforms, the last used first; they belong to no folder."""
        link = await self._opened(OpenRequest(page=1, lane=_LIST, begins=Begins.HERE))
        try:
            await link.ask(SessionsRequest(SessionId(cursor) if cursor else None))
            async for frame in link.frames():
                if isinstance(frame, NoticeFrame):
                    raise RequestError(_PARAMS, frame.text)
                if isinstance(frame, SessionsFrame):
                    found = frame.sessions
                    break
            else:
                raise RequestError.internal_error({"details": "The gateway has gone. Try again."})
        finally:
            await link.close()
        listed = [_info(session, cwd or "/") for session in found]
        return ListSessionsResponse(sessions=listed, next_cursor=found[-1].id if len(found) == LISTED else None)

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        """Begin a conversation."""
        del cwd
        id = SessionId(uuid4().hex)
        await self._converse(OpenRequest(page=MOST, lane=id, begins=Begins.NEW, session=id, whole=True))
        return NewSessionResponse(session_id=id)

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        """Open a session and send its whole transcript."""
        del cwd
        await self._converse(_on(_checked(session_id)))
        return LoadSessionResponse()

    async def resume_session(self, session_id: str, cwd: str, **_: Any) -> ResumeSessionResponse:
        """Open a session that the editor has the transcript of."""
        del cwd
        await self._converse(_on(_checked(session_id)), replays=False)
        return ResumeSessionResponse()

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """Let go of a session; the turn that the editor waits for is stopped."""
        conversation = self._find(session_id)
        await conversation.stop()
        del self._conversations[session_id]
        await conversation.close()
        return CloseSessionResponse()

    async def prompt(
        self, session_id: str, prompt: list[ContentBlock], meta: dict[str, Any] | None = None, **_: Any
    ) -> PromptResponse:
        """Say something, and wait until it is answered."""
        given = (meta or {}).get("messageId")
        id = f"{session_id}/{given}"[:200] if isinstance(given, str) and given else uuid4().hex
        try:
            state = await self._find(session_id).prompt(prompt, id)
        except SegueError as error:
            raise RequestError(_PARAMS, str(error)) from error
        return PromptResponse(stop_reason="cancelled" if state is TurnState.STOPPED else "end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop the turn that the editor waits for."""
        if session_id in self._conversations:
            await self._conversations[session_id].stop()

    async def close(self) -> None:
        """Let go of all conversations: the editor has gone."""
        closing = [conversation.close() for conversation in self._conversations.values()]
        self._conversations.clear()
        async with asyncio.timeout(_CLOSED):
            await asyncio.gather(*closing)

    async def _opened(self, request: OpenRequest) -> WindowWire:
        try:
            return await self._open(request)
        except Refused as refused:
            none = refused.why is Refusal.NOT_FOUND and request.session
            words = not_yours(request.session or "") if none else str(refused)
            raise RequestError(_NO_SESSION, words) from refused
        except SegueError as error:
            raise RequestError(_FAILED, str(error)) from error

    async def _converse(self, request: OpenRequest, *, replays: bool = True) -> None:
        id = request.session
        assert id is not None  # noqa: S101 -- every conversation is opened by its id
        if known := self._conversations.pop(id, None):
            await known.close()
        conversation = Conversation(id, await self._opened(request), self._editor, replays=replays)
        try:
            await conversation.opened()
        except BaseException:
            await conversation.close()
            raise
        self._conversations[id] = conversation
        # Only then does the editor know the session, and not before the answer was sent.
        asyncio.get_running_loop().call_soon(conversation.introduce)

    def _find(self, session: str) -> Conversation:
        if session not in self._conversations:
            raise RequestError(_PARAMS, f"session {session!r} isn't open here. Load it first.")
        return self._conversations[session]


async def serve(open_window: OpenWindow, pipe: Pipe) -> None:
    """Serve one editor until it goes."""
    agent = EditorAgent(open_window)
    try:
        # It has the methods that it offers, not all that there are.
        await run_agent(cast("Agent", agent), pipe, use_unstable_protocol=True)
    finally:
        await agent.close()


_FAILED = -32603
_PARAMS = -32602
_NO_SESSION = -32002
_SESSION = re.compile(r"[0-9A-Za-z_-]{1,64}")


def _checked(session: str) -> str:
    """A session's id as an editor names it, if it has the form of one."""
    if not _SESSION.fullmatch(session):
        raise RequestError(_NO_SESSION, str(Refused(Refusal.NOT_FOUND)))
    return session


def _on(session: str) -> OpenRequest:
    return OpenRequest(page=MOST, lane=session, begins=Begins.OWN, session=SessionId(session), whole=True)


def _info(session: ShownSession, folder: str) -> SessionInfo:
    used = datetime.fromtimestamp(session.used, UTC).isoformat().replace("+00:00", "Z")
    return SessionInfo(session_id=session.id, cwd=folder, title=session.title or session.text, updated_at=used)
