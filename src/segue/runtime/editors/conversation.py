"""A conversation that an editor shows: a window's frames become ACP's updates, and prompts what is said in the window.

Law: the editor is sent every entry of the transcript once, in order, but for its own prompts, which it shows itself.
A prompt has an id from the start: whatever goes away meanwhile, it is said again under the same id, and so once.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterable
from itertools import islice
from typing import Any, Protocol
from uuid import uuid4

from acp import RequestError, start_tool_call, update_tool_call
from acp.helpers import ContentBlock, SessionUpdate
from acp.interfaces import Client
from acp.schema import AllowedOutcome, SessionInfoUpdate, ToolCallUpdate

from segue.changes.exchange.traces import TurnState
from segue.core.handoffs import State
from segue.core.messages import File, Parts, ToolCall
from segue.core.transcripts import Role, Tip
from segue.core.values import SessionId
from segue.errors import Invalid, Overloaded, SegueError
from segue.runtime.editors import updates
from segue.runtime.editors.updates import Unfolding
from segue.runtime.server.listeners import LARGEST_FRAME
from segue.runtime.windows.frames import (
    AnsweredFrame,
    Asked,
    CommandsFrame,
    CommandsRequest,
    EarlierFrame,
    EarlierRequest,
    EntriesFrame,
    GrowthFrame,
    HandoffFrame,
    InvitationFrame,
    NoticeFrame,
    QuestionsFrame,
    RefusedFrame,
    ResumeRequest,
    SayRequest,
    Shown,
    ShownEntry,
    ShownQuestion,
    ShownSession,
    ShownTurn,
    TranscriptFrame,
    WaitingFrame,
    encode,
)
from segue.runtime.windows.invitation import invitation

log = logging.getLogger(__name__)

_PATIENCE = 60.0
"""Seconds until a conversation that doesn't open counts as lost."""
_CLOSED = "The conversation was closed. Load it again."
_NO_SESSION = -32002
_BACK = "Whatever you say here brings it back."


class WindowWire(Protocol):
    """A window's connection with the gateway."""

    async def ask(self, request: Asked) -> None:
        """Ask for something; the answer is a frame. Raises `Overloaded` while too much waits."""
        ...

    def frames(self) -> AsyncIterator[Shown]:
        """The gateway's frames, until it goes."""
        ...

    async def again(self, session: SessionId | None) -> None:
        """Wait until a gateway answers again, and open the same window on it."""
        ...

    async def close(self) -> None:
        """Let go of the gateway."""
        ...

    def locate(self, file: File) -> str:
        """The address of a file for the editor; empty, if it can't reach it."""
        ...


class Prompted:
    """A prompt that was sent and isn't answered yet."""

    def __init__(self, request: SayRequest) -> None:
        self.request = request
        self.answered: asyncio.Future[TurnState] = asyncio.get_running_loop().create_future()

    def settle(self, state: TurnState) -> None:
        """It has its answer."""
        if not self.answered.done():
            self.answered.set_result(state)


class Growth:
    """An answer that grows, as far as the editor was sent it."""

    def __init__(self, unfolding: Unfolding) -> None:
        self.parts: Parts = ()
        self.unfolding = unfolding
        self.begun = False
        """Whether the editor shows all that it answers, so that it can be shown itself."""
        self.answers: tuple[str, ...] = ()


class Conversation:
    """One conversation of an editor."""

    def __init__(self, id: SessionId, link: WindowWire, editor: Client, *, replays: bool = True) -> None:
        self.id = id
        self._link = link
        self._editor = editor
        self._replays = replays
        """Whether the transcript that was there before is sent."""
        self._session: ShownSession | None = None
        self._last = id
        """The session that was shown last."""
        self._away = False
        """Whether a handoff took it away: the next prompt brings it back."""
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._shown: set[Tip] = set()
        """Entries that the editor has."""
        self._page: list[ShownEntry] | None = None
        """The end of a transcript whose beginning the editor doesn't have, while more of it is asked for."""
        self._prompts: dict[str, Prompted] = {}
        self._own: dict[str, str] = {}
        """Prompts that the transcript doesn't hold yet, by their ids."""
        self._early: dict[str, str] = {}
        """Messages from elsewhere that were shown before the transcript held them."""
        self._waiting: dict[str, ShownTurn] = {}
        self._growing: dict[tuple[SessionId, int], Growth] = {}
        """Answers that grow, by session and turn."""
        self._notices: list[SessionUpdate] = []
        """What Segue says, while it would cut an answer that grows in two."""
        self._doing = ""
        """What the agent says it does; shown as a tool that runs."""
        self._doings = 0
        self._asking: dict[str, asyncio.Task[None]] = {}
        """Questions that the editor shows."""
        self._introducing: asyncio.Task[None] | None = None
        self._reading = asyncio.create_task(self._read(), name=f"window of an editor on {id}")
        self._reading.add_done_callback(self._ended)

    async def opened(self) -> None:
        """Wait until the transcript was sent; raises `RequestError` if there is no such session."""
        async with asyncio.timeout(_PATIENCE):
            await asyncio.shield(self._opened)

    def introduce(self) -> None:
        """Tell the editor, which knows the conversation by now, what commands can be typed."""
        self._introducing = asyncio.create_task(self._ask(CommandsRequest()))

    async def prompt(self, prompt: Iterable[ContentBlock], id: str) -> TurnState:
        """Say something; returns how it ended, once it is answered. The same id again is the same message."""
        if self._reading.done():
            raise RequestError.internal_error({"details": _CLOSED})
        text, files = updates.words(prompt)
        if id not in self._prompts:
            said = SayRequest(id, text, files)
            if (size := len(encode(said))) > LARGEST_FRAME:
                most = f"It may have {LARGEST_FRAME:,} as JSON, pictures included."
                raise Invalid("prompt", f"it has {size:,} bytes", most)
            self._prompts[id], self._own[id] = Prompted(said), text
            if self._away:
                await self._ask(ResumeRequest(self._last))
            await self._say(said)
        return await asyncio.shield(self._prompts[id].answered)

    async def _say(self, said: SayRequest) -> None:
        """Say something for the first time; if the gateway has gone, it is said again to the next one."""
        try:
            await self._link.ask(said)
        except Overloaded:
            del self._prompts[said.id], self._own[said.id]
            raise
        except SegueError as error:
            log.info("a prompt waits for the next gateway: %s", error)

    async def stop(self) -> None:
        """End the turn that runs, as /stop does."""
        if self._prompts:
            await self._ask(SayRequest(uuid4().hex, "/stop"))

    async def close(self) -> None:
        """Let go of it; what was said is answered all the same."""
        tasks = [self._reading, *self._asking.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._link.close()

    async def _ask(self, request: Asked) -> None:
        """Ask for something; if the gateway has gone, prompts are said again to the next one."""
        with contextlib.suppress(SegueError):
            await self._link.ask(request)

    async def _read(self) -> None:
        """Tell the editor what happens, from one gateway to the next."""
        while True:
            async for frame in self._link.frames():
                await self._handle(frame)
            self._page = None
            await self._link.again(self._last)
            for said in list(self._prompts.values()):
                await self._ask(said.request)

    def _ended(self, reading: asyncio.Task[None]) -> None:
        """Nobody waits for ever for a window that is gone."""
        error = RequestError.internal_error({"details": _CLOSED})
        failed = None if reading.cancelled() else reading.exception()
        if failed is not None and not isinstance(failed, ConnectionError):
            log.error("a conversation of an editor failed", exc_info=failed)
        waiting: list[asyncio.Future[Any]] = [self._opened, *(said.answered for said in self._prompts.values())]
        for waits in waiting:
            if not waits.done():
                waits.set_exception(error)
                waits.exception()  # it may be that nobody asks

    async def _update(self, *found: SessionUpdate) -> None:
        for update in found:
            await self._editor.session_update(self.id, update)

    async def _handle(self, frame: Shown) -> None:
        match frame:
            case TranscriptFrame() | EarlierFrame() | EntriesFrame():
                await self._follow(frame)
            case GrowthFrame() if self._opened.done() and self._page is None:
                await self._grow(frame)
            case WaitingFrame(turns):
                self._waiting = {turn.id: turn for turn in turns}
            case QuestionsFrame(questions):
                await self._show_questions(questions)
            case AnsweredFrame(id=id, state=state):
                self._own.pop(id, None)
                await self._tell_notices()
                if said := self._prompts.pop(id, None):
                    said.settle(state)
            case RefusedFrame(text) if not self._opened.done():
                self._opened.set_exception(RequestError(_NO_SESSION, text))
            case _:
                await self._remark(frame)
        if not self._grows():
            await self._tell_notices()

    async def _follow(self, frame: TranscriptFrame | EarlierFrame | EntriesFrame) -> None:
        """Follow the transcript, from where the window is on the session that it was opened for."""
        match frame:
            case TranscriptFrame(session, entries, earlier):
                if self._opened.done() or (session is not None and session.id == self.id):
                    await self._turn_to(session)
                    self._page = list(entries)
                    await self._more(earlier)
            case EarlierFrame(entries, earlier):
                if self._page is not None:
                    self._page[:0] = entries
                    await self._more(earlier)
            case EntriesFrame(session, entries):
                if self._page is not None:
                    self._page += entries
                elif self._opened.done():
                    await self._turn_to(session)
                    await self._tell(entries)

    async def _remark(self, frame: Shown) -> None:
        """Tell what Segue itself says."""
        match frame:
            case NoticeFrame(text, files):
                self._notices += [updates.noticed(text), *updates.attached(files, self._link.locate)]
            case RefusedFrame(text):
                await self._update(updates.noticed(text))
            case CommandsFrame(commands):
                await self._update(updates.commands(commands))
            case InvitationFrame():
                await self._update(updates.noticed(invitation(frame)))
            case HandoffFrame(state=State.DONE, to=to):
                self._away = True
                await self._update(updates.noticed(f"This conversation goes on in {to}. {_BACK}"))
            case _:
                """An editor shows no other frame."""

    def _grows(self) -> bool:
        """Whether words are to follow on those that the editor was sent last: until all is said, or something asked."""
        unanswered = self._waiting.keys() | self._prompts.keys()
        growing = [growth for growth in self._growing.values() if growth.begun]
        return not self._asking and any(not unanswered.isdisjoint(growth.answers) for growth in growing)

    async def _tell_notices(self) -> None:
        told, self._notices = self._notices, []
        await self._update(*told)

    async def _turn_to(self, session: ShownSession | None) -> None:
        """Take note of the session that is shown, and of its title."""
        known, self._session = self._session, session
        if session is None:
            return
        self._last, self._away = session.id, False
        if session.title and (known is None or known.title != session.title):
            await self._update(SessionInfoUpdate(session_update="session_info_update", title=session.title))

    async def _more(self, earlier: Tip | None) -> None:
        """Tell what the editor doesn't have of a transcript, once it is there from where the editor knows it."""
        page = self._page or []
        last = max((n for n, entry in enumerate(page) if entry.tip in self._shown), default=-1)
        if earlier is not None and last < 0:
            await self._ask(EarlierRequest(earlier))
            return
        self._page = None
        if self._opened.done() or self._replays:
            await self._tell(page[last + 1 :])
        self._shown.update(entry.tip for entry in page)
        if not self._opened.done():
            self._opened.set_result(None)

    async def _tell(self, entries: Iterable[ShownEntry]) -> None:
        for entry in entries:
            if entry.tip in self._shown:
                continue
            self._shown.add(entry.tip)
            growth = self._grown_in(entry.tip.session) if entry.role is Role.AGENT else None
            if growth is not None:
                await self._done()
                await self._update(*growth.unfolding.advance(entry.parts))
            elif not (entry.role is Role.PERSON and self._is_known(entry)):
                await self._update(*updates.told(entry, self._link.locate))

    def _grown_in(self, session: SessionId) -> Growth | None:
        """The answer that grew in a session, which is over: only one grows at a time."""
        over = [key for key in self._growing if key[0] == session]
        return [self._growing.pop(key) for key in over][-1] if over else None

    def _is_known(self, entry: ShownEntry) -> bool:
        """Whether the editor shows a message already: its own prompt, or one that was told before its answer grew."""
        own = next((id for id, text in self._own.items() if text == entry.text), None) if entry.here else None
        if own is not None:
            del self._own[own]
            return True
        early = next((id for id, text in self._early.items() if text == entry.text), None)
        if early is not None:
            del self._early[early]
        return early is not None

    async def _grow(self, frame: GrowthFrame) -> None:
        key = self._last, frame.turn
        growth = self._growing.get(key)
        if growth is None:
            growth = self._growing[key] = Growth(Unfolding(self._link.locate))
        growth.answers = frame.answers
        growth.parts = updates.grown(growth.parts, frame.at, frame.parts, more=frame.more)
        growth.begun = growth.begun or await self._show_early(frame.answers)
        if not growth.begun:
            # What it answers isn't known here yet: it is shown with the next piece, or whole.
            return
        called = growth.parts[-1].name if growth.parts and isinstance(growth.parts[-1], ToolCall) else ""
        doing = "" if frame.doing == called else frame.doing
        if doing != self._doing:
            await self._done()
        await self._update(*growth.unfolding.advance(growth.parts))
        if doing != self._doing:
            self._doing, self._doings = doing, self._doings + 1
            await self._update(start_tool_call(f"doing {self._doings}", doing, kind="other", status="in_progress"))

    async def _show_early(self, ids: Iterable[str]) -> bool:
        """Show messages from elsewhere whose turn runs, before what comes of it; False if one isn't known yet."""
        unshown = [id for id in ids if id not in self._prompts and id not in self._early]
        if any(id not in self._waiting for id in unshown):
            return False
        for turn in (self._waiting[id] for id in unshown):
            self._early[turn.id] = turn.text
            await self._update(*updates.asked(turn.text, "" if turn.mine else turn.name))
        return True

    async def _done(self) -> None:
        """The agent does no more what it said."""
        if self._doing:
            self._doing = ""
            await self._update(update_tool_call(f"doing {self._doings}", status="completed"))

    async def _show_questions(self, questions: Iterable[ShownQuestion]) -> None:
        """Ask in the editor what is asked about this session; what is answered elsewhere is asked no more."""
        asked = {one.id: one for one in questions if one.here or one.session == self._last}
        for id in [id for id in self._asking if id not in asked]:
            self._asking.pop(id).cancel()
            await self._update(update_tool_call(id, status="completed"))
        if any(asked[id].session for id in asked.keys() - self._asking.keys()):
            await self._show_early(islice(self._waiting, 1))
        for id in asked.keys() - self._asking.keys():
            self._asking[id] = asyncio.create_task(self._put(asked[id]), name=f"question {id}")
            self._asking[id].add_done_callback(_told)

    async def _put(self, question: ShownQuestion) -> None:
        if not question.choices:
            # An editor waits for one prompt at a time: it ends, so that the next one can be the answer.
            await self._update(updates.noticed(question.words))
            for said in list(self._prompts.values()):
                said.settle(TurnState.RUNNING)
            return
        await self._update(start_tool_call(question.id, question.words, kind="other", status="pending"))
        call = ToolCallUpdate(tool_call_id=question.id, title=question.words, status="pending")
        chosen = await self._editor.request_permission(self.id, call, updates.options(question.choices))
        if isinstance(chosen.outcome, AllowedOutcome):
            await self._ask(SayRequest(uuid4().hex, f"/answer {question.id} {chosen.outcome.option_id}"))


def _told(asking: asyncio.Task[None]) -> None:
    """A question that the editor can't show is open elsewhere."""
    if not asking.cancelled() and (failed := asking.exception()):
        log.warning("an editor wasn't asked: %s", failed)
