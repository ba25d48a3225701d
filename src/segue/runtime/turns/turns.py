"""Turns: sessions are claimed, the agent answers, and all that a turn leaves behind is written at once.

Law: one turn at a time per session, in order; sessions never wait for each other, only for a free slot. A turn that
this replica lost is dropped where it stands: the fence refuses its writes.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from msgspec.structs import replace

from segue.changes.exchange import handoffs, turns
from segue.changes.exchange.beginnings import Beginning, begin, draft_of, far_enough, reset_taken_back
from segue.changes.sessions import transcripts
from segue.core.contracts.agents import Agent, Event, Steers, SummedUp, Usage, Work
from segue.core.contracts.probes import Point
from segue.core.lanes import Address
from segue.core.messages import Notice, Part, Summary, Text, ToolResult
from segue.core.settings import AccountSettings, Busy, Streams
from segue.core.transcripts import GATEWAY, Draft, Path, TipMove
from segue.core.turns import Finish, Finished, Onto, Outcome, Owed, Run, TurnKind
from segue.core.values import Moment, SessionId
from segue.errors import Fenced, Refused, TooLong
from segue.runtime.parts import Ground
from segue.runtime.replica import Pause
from segue.runtime.telemetry.logs import traced
from segue.runtime.tools import BoundTools, Toolbox
from segue.runtime.turns.prompt import Prompt
from segue.runtime.turns.running import (
    STOPPED,
    Growth,
    Hung,
    Running,
    Said,
    answered,
    cancelled,
    notice,
    replies_to,
    until_stopped,
)
from segue.runtime.turns.streaming import Stream
from segue.runtime.turns.summaries import Summaries
from segue.runtime.turns.transcript_cache import TranscriptCache
from segue.runtime.windows.watchers import Growing

log = logging.getLogger(__name__)

FAILED = (
    "Something went wrong with that, {times} times over, and I stopped trying. Your message is kept; /retry asks again."
)
NOTHING_SAID = "(It finished without a word.)"
SUMMED_UP = "A summary stands for {count} now. Nothing is deleted: /undo and /rewind still reach all of it."
_SPOKEN = frozenset({TurnKind.ARRIVAL, TurnKind.RETRY})
"""Turns that somebody's words are the start of; no other is theirs to steer or to interrupt."""
_LONGEST_BACKOFF = 30.0
_MOMENT = 0.1
_LONG = 20_000
_BREATH = 0.01
"""Seconds that one agent may go on without letting anybody else."""


class Turns:
    """Runs the turns of the sessions that this replica holds."""

    def __init__(self, ground: Ground, agent: Agent, toolbox: Toolbox) -> None:
        self._store = ground.store
        self._adapters = ground.adapters
        self._replica = ground.replica
        self._settings = ground.settings
        self._clock = ground.clock
        self._metrics = ground.metrics
        self._tracing = ground.tracing
        self._watches = ground.watches
        self._probe = ground.probe
        self._ground = ground
        self._agent = agent
        self._toolbox = toolbox
        self._transcripts = TranscriptCache(ground.store)
        self._summaries = Summaries(ground.store, agent, ground.settings.turn_silence)
        self.prompt = Prompt(ground.store, ground.adapters, ground.settings, ground.clock, self._transcripts)
        self._live: dict[SessionId, Running] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._free = ground.settings.slots
        self.wake = Pause(ground.settings.poll)

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
        if self._free == 1:
            # Somebody may wait for it; as long as others were free, nobody did.
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
        elif live.answering is not None and await self._store.read(turns.lost, live.run.held):
            live.dropped = True
            live.answering.cancel()
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
            live = self._live[run.held.session] = Running(run)
            try:
                with traced(run.turns[0].trace):
                    run = await self._one(live)
            except Fenced as error:
                log.warning("%s", error)
                return
            except asyncio.CancelledError as error:
                if live.dropped or cancelled():
                    await self._hand_over(live)
                    raise
                # Nobody here did: a cancelled task of its own got out of the agent.
                run = await self._fail(live, error)
            except (GeneratorExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001 -- the agent isn't ours: its errors fail its turn alone
                run = await self._fail(live, error)
            finally:
                live.work = None
                # A turn that was taken away may be claimed anew before it has ended here.
                if self._live.get(live.run.held.session) is live:
                    del self._live[live.run.held.session]

    async def _one(self, live: Running) -> Run | None:
        """Answer a turn and write down all that it leaves behind; returns what runs next."""
        run = live.run
        if run.deaths >= self._settings.deaths:
            raise Hung(f"the process died {run.deaths} times over it")
        path = await self._path(run)
        begun = live.begun = begin(run, path)
        if begun.notice or run.turns[0].kind is TurnKind.EDIT:
            return await self._do(live, path)
        if begun.focus is not None:
            return await self._sum_up(live, begun.focus)
        if begun.onto is None and await self._summaries.due(run.held.session, path):
            run = await self._make_room(live)
            begun = live.begun
        work = await self.prompt.work(run, begun.path, begun.asked)
        tools = self._tools(live)
        work = live.work = replace(work, tools=tools)
        address = Address.parse(run.turns[-1].route) if run.turns[-1].route else Address("", "")
        account = address.platform, address.account
        adapter = self._adapters.get(account)
        streams = self._settings.accounts.get(account, AccountSettings()).streams
        if run.turns[0].awaited is not None or run.turns[0].kind is TurnKind.OPENING:
            # It may yet be kept for whoever waits, or its handoff may fail: nothing is shown before that is settled.
            streams = Streams.WHOLE
        stream = Stream(self._ground, adapter, streams, run)
        said = Said(run.journal)
        self._probe(Point.TURN_STARTED)
        self._metrics.started(self._clock() - run.turns[-1].accepted)
        try:
            with self._tracing.turn(run.held.session, run.name, run.turns[0].trace) as span:
                await until_stopped(live, lambda: self._answer(live, work, said, stream))
                for usage in live.spent:
                    span.spent(usage)
        except TooLong:
            if begun.onto is None and self._summaries.helps(run.held.session, run.name, begun.path):
                await self._make_room(live)
            raise
        finally:
            tools.end()
            await stream.end()
            if live.telling is not None:
                live.telling.cancel()
        self._probe(Point.TURN_ANSWERED)
        make = partial(answered, live, said, stream.streamed, adapter.longest if adapter else None)
        # A long text takes a while to be cut into messages: others go on meanwhile.
        done = await asyncio.to_thread(make) if len(said.text) > _LONG else make()
        return await self._write(live, done)

    async def _do(self, live: Running, path: Path) -> Run | None:
        """What the gateway does by itself: write an edit down, or move the tip and say so."""
        if live.run.turns[0].kind is TurnKind.EDIT:
            return await self._write(live, Finish((live.run.name,), live.begun.asked))
        done = await self._store.read(reset_taken_back, live.run, path)
        if done is None:
            return await self._write(live, notice(live.run, live.begun))
        try:
            return await self._write(live, done)
        except Refused as refused:
            live.begun = Beginning(path, notice=str(refused))
            return await self._write(live, notice(live.run, live.begun))

    async def _sum_up(self, live: Running, focus: str) -> Run | None:
        """Let a summary stand for all that was said."""
        run, path = live.run, live.begun.path
        work = live.work = await self.prompt.work(run, path, ())
        made: list[SummedUp] = []

        async def ask() -> None:
            made.append(await self._summaries.sum_up(work, focus))

        await until_stopped(live, ask)
        if not made:
            live.begun = Beginning(path, notice=STOPPED)
            return await self._write(live, notice(run, live.begun))
        last, count = path[-1].tip, await self._store.read(transcripts.count_said, run.held.session)
        draft = Draft(GATEWAY, (Summary(made[0].text, last.session, last.n),))
        text = SUMMED_UP.format(count="1 message" if count == 1 else f"{count:,} messages")
        seqs = tuple(turn.seq for turn in run.turns)
        onto = Onto(last, TipMove.COMPRESS, run.turns[0].person)
        replies = replies_to(run, (), text, 0, None)
        return await self._write(live, Finish(seqs, (draft,), replies, made[0].usage, onto=onto))

    async def _make_room(self, live: Running) -> Run:
        """Sum up before a turn that might not fit; the turn goes on from the summary."""
        run = live.run
        made = await self._summaries.sum_up(await self.prompt.work(run, live.begun.path, ()), "")
        by, at = run.turns[0].person, self._clock()
        tip = await self._store.write(turns.sum_up, run.held, run.name, made, by, at)
        run = live.run = replace(run, tip=tip)
        live.begun = begin(run, await self._path(run))
        return run

    async def _path(self, run: Run) -> Path:
        if enough := far_enough(run.turns[0]):
            return Path(await self._store.read(transcripts.path, run.tip, enough))
        return await self._transcripts.path(run.held.session, run.tip)

    async def _answer(self, live: Running, work: Work, said: Said, stream: Stream) -> None:
        """Take in what the agent says; a hung one is given up."""
        settings = self._settings
        events = self._agent.answer(work)
        growth = Growth(said, partial(self._show, live.run, stream))
        loop, breath = asyncio.get_running_loop(), 0.0
        whole = asyncio.timeout(settings.turn_total)
        try:
            async with whole:
                while True:
                    async with asyncio.timeout(None if live.calls else settings.turn_silence) as live.silence:
                        event = await anext(events, None)
                    live.silence = None
                    if event is None:
                        return
                    await self._take_in(live, said, growth, event)
                    if loop.time() > breath:
                        # An agent that never waits would keep everybody else from going on.
                        await asyncio.sleep(0)
                        breath = loop.time() + _BREATH
        except TimeoutError as error:
            if hung := self._hung(live, whole):
                raise hung from error
            raise
        finally:
            growth.end()
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    async def _take_in(self, live: Running, said: Said, growth: Growth, event: Event) -> None:
        if isinstance(event, Usage):
            live.spent.append(event)
            return
        said.add(event)
        if isinstance(event, ToolResult):
            await self._journal(live.run, said, event)
        elif isinstance(event, Text):
            growth.grew()
            if live.run.turns[0].kind is TurnKind.OPENING:
                await self._opening(live)

    def _show(self, run: Run, stream: Stream, text: str) -> None:
        """Show what was said so far, to whoever looks."""
        stream.show(text)
        self._watches.tell(run.held.session, Growing(run.name, text))

    def _hung(self, live: Running, whole: asyncio.Timeout) -> Hung | None:
        """What to say of an agent that took too long; None if it was something of its own that did."""
        if whole.expired():
            return Hung(f"the agent wasn't done after {self._settings.turn_total:g} s")
        if live.silence is not None and live.silence.expired():
            return Hung(f"the agent said nothing for {self._settings.turn_silence:g} s")
        return None

    async def _opening(self, live: Running) -> None:
        """A handoff's opening grows, which is progress; told now and then."""
        at, patience, run = self._clock(), self._settings.handoff, live.run
        if live.told is None:
            live.told = at
            live.telling = asyncio.create_task(self._first_words(run))
        elif at - live.told > patience.progress / 10:
            live.told = at
            await self._store.write(handoffs.wrote, run.held.session, run.name, patience, at)

    async def _first_words(self, run: Run) -> None:
        """Tell that the agent writes, unless it is done in a moment: that is the better news."""
        await asyncio.sleep(_MOMENT)
        await self._store.write(handoffs.wrote, run.held.session, run.name, self._settings.handoff, self._clock())

    async def _journal(self, run: Run, said: Said, result: ToolResult) -> None:
        call = said.call(result.id)
        parts: tuple[Part, ...] = (*said.thoughts(call), call, result) if call else (result,)
        await self._store.write(turns.journal, run.held, run.name, result.id, parts, self._clock())
        self._probe(Point.TURN_JOURNALED)

    async def _meanwhile(self, live: Running) -> None:
        """The speaker said more while their turn runs: steer it, or end it."""
        first = live.run.turns[0]
        if first.kind not in _SPOKEN:
            return
        waiting = await self._store.read(turns.waiting, live.run.held.session, 100)
        known = {turn.seq for turn in (*live.run.turns, *live.taken_in)}
        more = [t for t in waiting if t.seq not in known and t.person == first.person and t.kind is TurnKind.ARRIVAL]
        if self._settings.busy is Busy.INTERRUPT:
            if more:
                live.stop()
            return
        # An answer goes where it was asked for: what was said in another place is answered there.
        more = [turn for turn in more if turn.lane == first.lane]
        if not more:
            return
        drafts = await self.prompt.heard(tuple(draft_of(turn) for turn in more))
        if isinstance(self._agent, Steers) and live.work and await self._agent.steer(live.work, drafts):
            live.taken_in += more

    async def _write(self, live: Running, done: Finish) -> Run | None:
        run, at = live.run, self._clock()
        done = self._owing(live, done)
        finished = await self._end(run, done, at)
        self._probe(Point.TURN_FINISHED)
        self._transcripts.go_on(live.begun.path, run, done, finished, at)
        self._tell(run, done)
        return finished.next

    async def _end(self, run: Run, done: Finish, at: Moment) -> Finished:
        if run.turns[0].kind is TurnKind.OPENING:
            return await self._store.write(handoffs.finish, run.held, done, self._settings.handoff, at)
        return await self._store.write(turns.finish, run.held, done, at)

    def _owing(self, live: Running, done: Finish) -> Finish:
        """The same with what is owed: a session that was started for one task tells its parent what came of it."""
        run, first = live.run, live.run.turns[0]
        owed = None
        if run.owes is not None:
            answers = done.drafts[len(live.begun.asked) + len(live.taken_in) :]
            text = "\n\n".join(draft.text for draft in answers if draft.text) or NOTHING_SAID
            cause = first.cause or f"{run.held.session}/{run.name}"
            owed = Owed(run.owes, text, first.person, self._home(run), cause, first.trace)
        return replace(done, kind=first.kind, owed=owed)

    def _home(self, run: Run) -> str:
        """The home that the settings name for the account that a turn came from."""
        route = next((turn.route for turn in run.turns if turn.route), "")
        address = Address.parse(route) if route else Address("", "")
        home = self._settings.accounts.get((address.platform, address.account), AccountSettings()).home
        return home.address.key if home else ""

    def _tools(self, live: Running) -> BoundTools:
        """What the agent may ask for in a turn."""
        return self._toolbox.bind(
            live.run, self._home(live.run), lambda: live.calling(self._settings.turn_silence), self.waiting
        )

    def _tell(self, run: Run, done: Finish) -> None:
        self._metrics.ended(done.outcome, self._clock() - run.turns[0].accepted)

    async def _fail(self, live: Running, error: BaseException) -> Run | None:
        """The agent failed: again after a pause, or an honest error once it has failed too often."""
        run = live.run
        # The error's words may quote what somebody said: its name and its place say enough.
        frames = traceback.extract_tb(error.__traceback__)[-1:]
        where = f"{frames[0].filename}:{frames[0].lineno}" if frames else ""
        with traced(run.turns[0].trace):
            log.warning(
                "turn %s of session %s failed",
                run.name,
                run.held.session,
                extra={"failure": type(error).__name__, "where": where},
            )
        failed = run.fails + 1
        try:
            if failed < self._settings.attempts and run.deaths < self._settings.deaths:
                delay = min(_LONGEST_BACKOFF, 0.5 * 2**run.fails)
                await self._store.write(turns.let_go, run.held, 1, delay, run.name, tuple(live.spent), self._clock())
                asyncio.get_running_loop().call_later(delay, self.wake.set)
                return None
            text = FAILED.format(times=failed if run.deaths < self._settings.deaths else run.deaths)
            drafts = (*live.begun.asked, Draft(GATEWAY, (Notice(text),)))
            replies = replies_to(run, (), text, len(drafts), None)
            seqs = tuple(turn.seq for turn in run.turns)
            onto, spent = live.begun.onto, tuple(live.spent)
            done = Finish(seqs, drafts, replies, spent, Outcome.FAILED, repr(error)[:500], run.streamed, onto)
            done = self._owing(live, done)
            finished = await self._end(run, done, self._clock())
        except Fenced as fenced:
            log.warning("%s", fenced)
            return None
        self._tell(run, done)
        return finished.next

    async def _hand_over(self, live: Running) -> None:
        """Let a session go for others to take at once."""
        run, at = live.run, self._clock()
        try:
            async with asyncio.timeout(1.0):
                await self._store.write(turns.let_go, run.held, 0, 0.0, run.name, tuple(live.spent), at)
        except (Fenced, TimeoutError) as error:
            log.warning("session %s wasn't handed over: %r", run.held.session, error)
