"""Turns: sessions are claimed, the agent answers, and all that a turn leaves behind is written at once.

Law: one turn at a time per session, in order; sessions never wait for each other, only for a free slot. A turn that
this replica lost is dropped where it stands: the fence refuses its writes.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from segue.core.contracts import Adapter, Agent, Clock, Longest, Point, Probe, Steers, Usage, Work
from segue.core.lanes import Address
from segue.core.messages import Notice, Part, Reasoning, Text, ToolCall, ToolResult
from segue.core.splitting import split
from segue.core.transcripts import AGENT, GATEWAY, Draft, Entry, Tip
from segue.core.turns import TurnKind
from segue.core.values import SessionId
from segue.errors import Fenced
from segue.runtime.beginnings import Beginning, begin, draft_of
from segue.runtime.logs import traced
from segue.runtime.metrics import Metrics
from segue.runtime.paths import Paths
from segue.runtime.patience import Patient
from segue.runtime.prompt import Prompt
from segue.runtime.replica import Replica
from segue.runtime.settings import AccountSettings, Busy, GatewaySettings
from segue.runtime.streams import Stream
from segue.runtime.tracing import Tracing
from segue.runtime.wakes import Wake
from segue.runtime.watches import Growing, Watches
from segue.store import transcripts, turns
from segue.store.turns import Finish, Outcome, Reply, Run, Streamed, Turn

log = logging.getLogger(__name__)

FAILED = (
    "Something went wrong with that, {times} times over, and I stopped trying. Your message is kept; /retry asks again."
)
STOPPED = "(Stopped.)"
_LONGEST_BACKOFF = 30.0
_BACK = {TurnKind.UNDO, TurnKind.RETRY, TurnKind.REWIND}
"""What may go back further than a summary."""


class Hung(Exception):
    """The agent said nothing for too long."""


class Said:
    """What an agent has said so far in a turn."""

    def __init__(self, journal: tuple[Part, ...]) -> None:
        self.parts: list[Part] = list(journal)
        self.usage: list[Usage] = []
        self._open = False
        self._thought = len(journal)

    def add(self, part: Part) -> None:
        """One thing more; pieces of text that follow each other are one text."""
        last = self.parts[-1] if self.parts else None
        if isinstance(part, Text) and isinstance(last, Text) and self._open:
            self.parts[-1] = Text(last.text + part.text)
        else:
            self.parts.append(part)
        self._open = isinstance(part, Text)

    @property
    def text(self) -> str:
        """The words a person reads."""
        return "\n\n".join(p.text.strip() for p in self.parts if isinstance(p, Text | Notice) and p.text.strip())

    def call(self, id: str) -> ToolCall | None:
        """The call that a result answers."""
        return next((p for p in reversed(self.parts) if isinstance(p, ToolCall) and p.id == id), None)

    def thoughts(self, call: ToolCall) -> list[Reasoning]:
        """What was thought up to a call and not yet asked for: providers refuse calls without the thoughts before them."""
        at = next(n for n in reversed(range(len(self.parts))) if self.parts[n] is call)
        found = [part for part in self.parts[self._thought : at] if isinstance(part, Reasoning)]
        self._thought = max(self._thought, at)
        return found


class Live:
    """A turn that runs here."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.begun = Beginning((), tuple(draft_of(turn) for turn in run.turns))
        self.answering: asyncio.Task[None] | None = None
        self.stopping = False
        self.work: Work | None = None
        self.taken_in: list[Turn] = []
        """What its person said meanwhile and the agent took in."""

    def stop(self) -> None:
        """End it; what was said so far is kept."""
        self.stopping = True
        if self.answering is not None:
            self.answering.cancel()


class Turns:
    """Runs the turns of the sessions that this replica holds."""

    def __init__(
        self,
        store: Patient,
        agent: Agent,
        adapters: Mapping[tuple[str, str], Adapter],
        replica: Replica,
        settings: GatewaySettings,
        clock: Clock,
        finished: Callable[[Run, Finish], None],
        metrics: Metrics,
        tracing: Tracing,
        watches: Watches,
        probe: Probe,
    ) -> None:
        self._store = store
        self._agent = agent
        self._adapters = adapters
        self._replica = replica
        self._settings = settings
        self._clock = clock
        self._finished = finished
        self._metrics = metrics
        self._tracing = tracing
        self._watches = watches
        self._probe = probe
        self._paths = Paths(store)
        self.prompt = Prompt(store, adapters, settings, clock)
        self._live: dict[SessionId, Live] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._free = settings.slots
        self.wake = Wake(settings.poll)

    @property
    def running(self) -> int:
        """Turns that run here now."""
        return len(self._tasks)

    def reserve(self) -> str | None:
        """Take a slot for a session that may be claimed; returns this replica's id, None if no slot is free."""
        if self._free <= 0:
            return None
        self._free -= 1
        return self._replica.id

    def give_back(self) -> None:
        """A slot isn't needed after all."""
        self._free += 1
        self.wake.set()

    def start(self, run: Run) -> None:
        """Run a session's turns, in a slot that was reserved."""
        task = asyncio.create_task(self._serve(run), name=f"session {run.held.session}")
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def claim(self) -> None:
        """Take sessions that nobody holds, until cancelled."""
        while True:
            count = self._free
            runs: list[Run] = []
            if count > 0:
                self._free -= count
                try:
                    runs = await self._store.write(turns.claim, self._replica.id, count)
                finally:
                    self._free += count - len(runs)
                for run in runs:
                    self.start(run)
            if len(runs) < count or count <= 0:
                await self.wake.wait()

    async def look(self, session: SessionId) -> None:
        """Something changed for the turn that runs in a session: somebody wants it to end, or said more."""
        live = self._live.get(session)
        if live is None:
            return
        if await self._store.read(turns.stopped, session):
            live.stop()
        elif self._settings.busy is not Busy.QUEUE:
            await self._meanwhile(live)

    async def drain(self, grace: float) -> None:
        """Let running turns finish for a while; hand the rest over."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """While a turn waits for another session it holds no slot."""
        self.give_back()
        try:
            yield
        finally:
            # What was running goes on at once; the slot is paid back by the next claims.
            self._free -= 1

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.give_back()
        if not task.cancelled() and (error := task.exception()):
            log.error("a turn failed in a way that nobody foresaw", exc_info=error)

    async def _serve(self, run: Run | None) -> None:
        while run is not None:
            live = self._live[run.held.session] = Live(run)
            try:
                with traced(run.turns[0].trace):
                    run = await self._one(live)
            except Fenced as error:
                log.warning("%s", error)
                return
            except asyncio.CancelledError:
                await self._hand_over(live.run)
                raise
            except Exception as error:  # noqa: BLE001 -- the agent isn't ours: whatever it raises fails its turn alone
                run = await self._fail(live, error)
            finally:
                del self._live[live.run.held.session]

    async def _one(self, live: Live) -> Run | None:
        """Answer a turn and write down all that it leaves behind; returns what runs next."""
        run = live.run
        if run.deaths >= self._settings.deaths:
            raise Hung(f"the process died {run.deaths} times over it")
        begun = live.begun = begin(run, await self._path(run))
        if begun.notice:
            return await self._write(live, _notice(run, begun))
        work = live.work = await self.prompt.work(run, begun.path, begun.asked)
        address = Address.parse(run.turns[-1].route) if run.turns[-1].route else Address("", "")
        account = address.platform, address.account
        adapter = self._adapters.get(account)
        streams = self._settings.accounts.get(account, AccountSettings()).streams
        stream = Stream(self._store, adapter, self._replica, self._clock, streams, run, self._probe)
        said = Said(run.journal)
        self._probe(Point.TURN_STARTED)
        self._metrics.started(self._clock() - run.turns[-1].accepted)
        try:
            with self._tracing.turn(run.held.session, run.name, run.turns[0].trace) as span:
                live.answering = asyncio.create_task(self._answer(work, said, stream, run))
                if live.stopping:
                    live.answering.cancel()
                await live.answering
                for usage in said.usage:
                    span.spent(usage)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not live.stopping or (task is not None and task.cancelling()):
                raise
        finally:
            await stream.end()
        self._probe(Point.TURN_ANSWERED)
        done = _finish(live, said, stream.streamed, adapter.longest if adapter else None)
        return await self._write(live, done)

    async def _path(self, run: Run) -> list[Entry]:
        if run.turns[0].kind in _BACK:
            return await self._store.read(transcripts.path, run.tip)
        return await self._paths.to(run.tip)

    async def _answer(self, work: Work, said: Said, stream: Stream, run: Run) -> None:
        """Take in what the agent says; a hung one is given up."""
        settings = self._settings
        events = self._agent.answer(work)
        try:
            async with asyncio.timeout(settings.turn_total):
                while True:
                    async with asyncio.timeout(settings.turn_silence):
                        event = await anext(events, None)
                    if event is None:
                        return
                    if isinstance(event, Usage):
                        said.usage.append(event)
                        continue
                    said.add(event)
                    if isinstance(event, ToolResult):
                        await self._journal(run, said, event)
                    elif isinstance(event, Text):
                        stream.show(said.text)
                        self._watches.tell(run.held.session, Growing(run.name, said.text))
        except TimeoutError as error:
            raise Hung(f"the agent said nothing for {settings.turn_silence:g} s") from error
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    async def _journal(self, run: Run, said: Said, result: ToolResult) -> None:
        call = said.call(result.id)
        parts: tuple[Part, ...] = (*said.thoughts(call), call, result) if call else (result,)
        await self._store.write(turns.journal, run.held, run.name, result.id, parts, self._clock())
        self._probe(Point.TURN_JOURNALED)

    async def _meanwhile(self, live: Live) -> None:
        """The speaker said more while their turn runs: steer it, or end it."""
        speaker = live.run.turns[0].person
        waiting = await self._store.read(turns.waiting, live.run.held.session, 100)
        known = {turn.seq for turn in (*live.run.turns, *live.taken_in)}
        more = [t for t in waiting if t.seq not in known and t.person == speaker and t.kind is TurnKind.ARRIVAL]
        if not more:
            return
        if self._settings.busy is Busy.INTERRUPT:
            live.stop()
            return
        drafts = await self.prompt.heard(tuple(draft_of(turn) for turn in more))
        if isinstance(self._agent, Steers) and live.work and await self._agent.steer(live.work, drafts):
            live.taken_in += more

    async def _write(self, live: Live, done: Finish) -> Run | None:
        run, at = live.run, self._clock()
        finished = await self._store.write(turns.finish, run.held, done, at)
        self._probe(Point.TURN_FINISHED)
        if finished.tip is not None and finished.before == (done.onto.tip if done.onto else run.tip):
            entries, parent = list(live.begun.path), finished.before
            for n, draft in enumerate(done.drafts, finished.tip.n - len(done.drafts) + 1):
                tip = Tip(run.held.session, n)
                entry = Entry(tip, parent, draft.author, draft.parts, at, run.name, draft.source)
                entries.append(entry)
                parent = entry.tip
            self._paths.keep(finished.tip, entries, run.tip)
        self._tell(run, done)
        return finished.next

    def _tell(self, run: Run, done: Finish) -> None:
        self._metrics.ended(done.outcome, self._clock() - run.turns[0].accepted)
        self._finished(run, done)

    async def _fail(self, live: Live, error: Exception) -> Run | None:
        """The agent failed: again after a pause, or an honest error once it has failed too often."""
        run = live.run
        # The error's words may quote what somebody said: its name and its place say enough.
        where = traceback.extract_tb(error.__traceback__)[-1:]
        at = f"{where[0].filename}:{where[0].lineno}" if where else ""
        log.warning(
            "turn %s of session %s failed",
            run.name,
            run.held.session,
            extra={"failure": type(error).__name__, "at": at},
        )
        failed = run.fails + 1
        try:
            if failed < self._settings.attempts and run.deaths < self._settings.deaths:
                delay = min(_LONGEST_BACKOFF, 0.5 * 2**run.fails)
                await self._store.write(turns.let_go, run.held, 1, delay)
                asyncio.get_running_loop().call_later(delay, self.wake.set)
                return None
            text = FAILED.format(times=failed if run.deaths < self._settings.deaths else run.deaths)
            drafts = (*live.begun.asked, Draft(GATEWAY, (Notice(text),)))
            replies = _replies(run, (), text, len(drafts), None)
            seqs = tuple(turn.seq for turn in run.turns)
            done = Finish(seqs, drafts, replies, (), Outcome.FAILED, repr(error)[:500], run.streamed, live.begun.onto)
            finished = await self._store.write(turns.finish, run.held, done, self._clock())
        except Fenced as fenced:
            log.warning("%s", fenced)
            return None
        self._tell(run, done)
        return finished.next

    async def _hand_over(self, run: Run) -> None:
        """Let a session go for others to take at once."""
        try:
            async with asyncio.timeout(1.0):
                await self._store.write(turns.let_go, run.held, 0, 0.0)
        except (Fenced, TimeoutError) as error:
            log.warning("session %s wasn't handed over: %r", run.held.session, error)


def _finish(live: Live, said: Said, streamed: Streamed, longest: Longest | None) -> Finish:
    """All that a turn leaves behind."""
    run = live.run
    answered = (*run.turns, *live.taken_in)
    drafts = [*live.begun.asked, *(draft_of(turn) for turn in live.taken_in)]
    text, shown, outcome = said.text, 0, Outcome.ANSWERED
    if said.parts:
        drafts.append(Draft(AGENT, tuple(said.parts)))
        shown = len(drafts)
    if live.stopping:
        text, outcome = f"{text}\n\n{STOPPED}".strip(), Outcome.STOPPED
        drafts.append(Draft(GATEWAY, (Notice(STOPPED),)))
    replies = _replies(run, tuple(live.taken_in), text, shown, longest)
    seqs = tuple(turn.seq for turn in answered)
    return Finish(seqs, tuple(drafts), replies, tuple(said.usage), outcome, None, streamed, live.begun.onto)


def _notice(run: Run, begun: Beginning) -> Finish:
    """What the gateway did by itself, and says."""
    seqs = tuple(turn.seq for turn in run.turns)
    return Finish(seqs, (), _replies(run, (), begun.notice, 0, None), onto=begun.onto)


def _replies(run: Run, taken_in: tuple[Turn, ...], text: str, shown: int, longest: Longest | None) -> tuple[Reply, ...]:
    """The messages that carry a text to where it was asked."""
    route = run.turns[-1].route
    if not text or not route:
        return ()
    answers = tuple(turn.message for turn in (*run.turns, *taken_in) if turn.message)
    pieces = split(text, longest) if longest else [text]
    return tuple(Reply(Address.parse(route), piece, shown, answers) for piece in pieces)
