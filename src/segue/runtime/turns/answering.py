"""One turn, from its work to its finish: an agent answers, and all that it leaves behind is written at once."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import nullcontext
from functools import partial

from msgspec.structs import replace

from segue.changes.exchange import questions, readers, turns
from segue.changes.people import grants
from segue.changes.people.access import Access
from segue.changes.sessions import titles, transcripts
from segue.changes.sessions.resets import reset_taken_back
from segue.core.contracts.agents import (
    Agent,
    AgentState,
    ChoosesTools,
    Compresses,
    Event,
    Progress,
    PutOff,
    Steers,
    SubAgent,
    SummedUp,
    Titled,
    Usage,
    Work,
)
from segue.core.contracts.probes import Point
from segue.core.destinations import names_of
from segue.core.lanes import Address
from segue.core.messages import (
    Notice,
    Parts,
    SetAside,
    Summary,
    Text,
    ToolCall,
    ToolResult,
    cleaned,
)
from segue.core.settings import NO_ACCOUNT, Busy
from segue.core.text.splitting import SHORT
from segue.core.transcripts import GATEWAY, Draft, Path, TipMove, nowhere
from segue.core.turns import (
    Beginning,
    Finish,
    Finished,
    Onto,
    Outcome,
    Owed,
    Run,
    TurnKind,
    begin,
    draft_of,
    with_swap,
)
from segue.core.values import Moment, PersonId
from segue.errors import AgentFailed, Fenced, Refused, TooLong
from segue.runtime.outbox import Outbox
from segue.runtime.parts import Ground
from segue.runtime.telemetry.logs import traced
from segue.runtime.tools import BoundTools, Toolbox
from segue.runtime.turns.agents import Agents, as_seen, note
from segue.runtime.turns.asking import Askers, TurnAsker, Waiting
from segue.runtime.turns.budgets import TurnBudget
from segue.runtime.turns.failures import failure
from segue.runtime.turns.prompt import PlaceJoined, Prompt
from segue.runtime.turns.running import (
    NOTHING_SAID,
    SPOKEN,
    STOPPED,
    Hung,
    Running,
    answered,
    notice,
    replies_to,
    until_stopped,
)
from segue.runtime.turns.streaming import Stream
from segue.runtime.turns.summaries import Summaries

log = logging.getLogger(__name__)

SUMMED_UP = "A summary stands for {count} now. Nothing is deleted: /undo and /rewind still reach all of it."
_WITHOUT_AGENT = frozenset({TurnKind.EDIT, TurnKind.SWAP})
"""Turns that are only written down."""
_LONGEST_BACKOFF = 30.0
_MOMENT = 0.1
_BREATH = 0.01
"""Seconds that one agent may go on without letting anybody else."""

Outboxes = Mapping[tuple[str, str], Outbox]
"""By platform and account."""


def _chosen(toolbox: Toolbox, agent: Agent) -> Toolbox:
    """The tools of an agent."""
    return toolbox.only(agent.gateway_tools if isinstance(agent, ChoosesTools) else None)


def _there(toolbox: Toolbox, chosen: Mapping[str, tuple[str, ...]], address: Address | None) -> Toolbox:
    """The tools that a place leaves."""
    for name in names_of(address) if address else ():
        toolbox = toolbox.only(chosen.get(name))
    return toolbox


class Answering:
    """Has turns answered, one call a turn."""

    def __init__(
        self,
        ground: Ground,
        agents: Agents,
        toolbox: Toolbox,
        prompt: Prompt,
        waiting: Waiting,
        outboxes: Outboxes,
    ) -> None:
        self._ground = ground
        self._outboxes = outboxes
        self._store = ground.store
        self._settings = ground.settings
        self._clock = ground.clock
        self._metrics = ground.metrics
        self._probe = ground.probe
        self._sequel = ground.sequel
        self._agents = agents
        self._toolbox = toolbox
        self._toolboxes = {
            (name, account): _chosen(toolbox, agent).only(ground.settings.accounts.get(account, NO_ACCOUNT).tools)
            for name, agent in agents.named.items()
            for account in ground.adapters
        }
        self._prompt = prompt
        self._waiting = waiting
        self._askers = Askers(ground, waiting)
        self._limited = ground.settings.budget.any
        self._hosts = frozenset(identity.key for identity in ground.settings.hosts)
        self._still = Access(ground.settings, ground.ids).still
        self._summaries = Summaries(ground.store, ground.settings.turn_silence)

    async def answer(self, live: Running) -> Run | None:
        """Answer a turn and write down all that it leaves behind; returns what runs next."""
        run = live.run
        if run.deaths >= self._settings.deaths:
            raise Hung(f"the process died {run.deaths} times over it")
        begun = live.begun = begin(run, path := await self._prompt.transcripts.path(run))
        swap = begun.path.agent if begun.swap is None else begun.swap
        state = await self._find_agent(live, swap)
        agent, tracing = self._agents.named[live.agent_name], self._ground.tracing
        live.noting = self._agents.noting.get(live.agent_name)
        if begun.notice or run.turns[0].kind in _WITHOUT_AGENT:
            return await self._do(live, path)
        if self._limited:
            live.budget = TurnBudget(self._ground, self._askers, live)
        if begun.focus is not None:
            return await self._sum_up(live, agent, begun.focus)
        if begun.onto is None and isinstance(agent, Compresses) and await self._summaries.due(agent, run, path):
            await self._make_room(live, agent)
        asker = TurnAsker(self._askers, live)
        asks = (live.begun.asked, live.noting)
        try:
            work = await self._prompt.work(live.run, live.begun.path, *asks, joins=begun.onto is None)
        except PlaceJoined as joined:
            live.run = replace(live.run, tip=joined.tip)
            live.begun = begin(live.run, await self._prompt.transcripts.path(live.run))
            work = await self._prompt.work(live.run, live.begun.path, *asks)
        box = self._toolboxes.get((live.agent_name, live.governed)) or _chosen(self._toolbox, agent)
        box = _there(box, self._settings.tools_of_lanes, live.origin) if self._settings.tools_of_lanes else box
        offers = box.offers if work.notes is None else box.with_notebook
        tools = BoundTools(offers, live, self._settings, partial(self._waiting, run), asker, partial(self._check, run))
        forked = state is None and len(path) > 0 and path[0].tip.session != run.held.session
        branched = await self._agents.branched(run, live.agent_name, live.begun.path) if forked else None
        work = replace(work, tools=tools, state=state and as_seen(state, live.begun.path), branched=branched)
        live.agent, live.work = agent, replace(work, ask=asker, budget=live.budget)
        stream = Stream(self._ground, live, self._outboxes.get(live.account))
        self._probe(Point.TURN_STARTED)
        self._metrics.started.observe(self._clock() - run.turns[-1].accepted)
        try:
            with (
                tracing.turn(run.held.session, run.name, run.turns[0].trace, live.spent) if tracing else nullcontext(),
                self._ground.lent.lent(run.held.session, live.agent_name, tools) as server,
            ):
                live.work = replace(live.work, tool_server=server) if server else live.work
                await until_stopped(live, partial(self._listen, live, agent, live.work, stream))
        except TooLong:
            if begun.onto is None and self._summaries.helps(agent, run, live.begun.path):
                await self._make_room(live, agent)
            raise
        finally:
            tools.end()
            await stream.end()
        self._probe(Point.TURN_ANSWERED)
        adapter = self._ground.adapters.get(live.account)
        make = partial(answered, live, adapter.fits if adapter else None)
        # A long text takes a while to be cut into messages: others go on meanwhile.
        return await self._write(live, await asyncio.to_thread(make) if len(live.said.text) > SHORT else make())

    async def _check(self, run: Run) -> None:
        """Raise `Refused` if the person of a turn may talk no more: its tools do nothing more for them."""
        await self._store.read(grants.check_turn, run.held.session, run.turns[0].seq, self._still)

    async def _find_agent(self, live: Running, swap: str | None) -> AgentState | None:
        """Find the agent that answers, and the place that names it; returns what the agent kept."""
        if live.origin is None:
            live.origin = await self._store.read(turns.origin, live.run.held.session, live.run.name)
        live.agent_name, state = await self._agents.of(live.run, swap, live.origin)
        return state

    async def _do(self, live: Running, path: Path) -> Run | None:
        """Do what needs no agent: write an edit down, or move the tip and say so."""
        if live.run.turns[0].kind in _WITHOUT_AGENT:
            asked = live.begun.asked
            said = asked[0].text if live.run.turns[0].kind is TurnKind.SWAP else ""
            return await self._write(live, Finish((live.run.name,), asked, replies_to(live.run, (), said, 1, None)))
        done = await self._store.read(reset_taken_back, live.run, path)
        try:
            return await self._write(live, done or notice(live.run, live.begun))
        except Refused as refused:
            live.begun = Beginning(path, notice=str(refused))
            return await self._write(live, notice(live.run, live.begun))

    async def _sum_up(self, live: Running, agent: Agent, focus: str) -> Run | None:
        """Let a summary stand for all that was said."""
        run, path = live.run, live.begun.path
        work = live.work = replace(await self._prompt.work(run, path, (), live.noting), budget=live.budget)
        made: list[SummedUp] = []

        async def ask() -> None:
            await live.budget.reserve()
            made.append(await self._summaries.sum_up(agent, work, focus))

        await until_stopped(live, ask)
        if not made:
            live.begun = Beginning(path, notice=STOPPED)
            return await self._write(live, notice(run, live.begun))
        last, count = path[-1].tip, await self._store.read(transcripts.count_said, run.held.session)
        draft = Draft(GATEWAY, with_swap(Summary(made[0].text, last.session, last.n), path.agent))
        text = SUMMED_UP.format(count="1 message" if count == 1 else f"{count:,} messages")
        seqs = tuple(turn.seq for turn in run.turns)
        onto = Onto(last, TipMove.COMPRESS, run.turns[0].person)
        replies = replies_to(run, (), text, 0, None)
        return await self._write(live, Finish(seqs, (draft,), replies, made[0].usage, onto=onto))

    async def _make_room(self, live: Running, agent: Agent) -> None:
        """Sum up before a turn that might not fit; the turn goes on from the summary."""
        run = live.run
        work = await self._prompt.work(run, live.begun.path, (), live.noting)
        made = await self._summaries.sum_up(agent, replace(work, budget=live.budget), "")
        by, at = run.turns[0].person, self._clock()
        tip = await self._store.write(turns.sum_up, run.held, run.name, made, live.begun.path.agent, by, at)
        run = live.run = replace(run, tip=tip)
        live.begun = begin(run, await self._prompt.transcripts.path(run))

    async def _listen(self, live: Running, agent: Agent, work: Work, stream: Stream) -> None:
        """Take in what the agent says; a hung one is given up."""
        settings = self._settings
        events = agent.answer(work)
        loop, breath = asyncio.get_running_loop(), 0.0
        whole = live.whole = asyncio.timeout(settings.turn_total)
        try:
            async with whole:
                if self._limited:
                    await live.budget.reserve()
                while True:
                    async with asyncio.timeout(None if live.calls else settings.turn_silence) as live.silence:
                        event = await anext(events, None)
                    live.silence = None
                    if event is None:
                        return
                    await self._take_in(live, stream, event)
                    if loop.time() > breath:
                        # An agent that never waits would keep everybody else from going on.
                        await asyncio.sleep(0)
                        breath = loop.time() + _BREATH
        except TimeoutError as error:
            if hung := self._hung(live, whole):
                raise hung from error
            raise
        finally:
            live.whole = live.silence = None
            if live.telling is not None:
                live.telling.cancel()
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    async def _take_in(self, live: Running, stream: Stream, event: Event) -> None:
        if not (isinstance(event, Text) and event.text.isascii() and "\0" not in event.text):
            event = cleaned(event)
        if isinstance(event, Usage | AgentState | Titled | SubAgent):
            live.note(event)
            return
        if isinstance(event, Progress):
            stream.grew(event.doing)
            return
        if isinstance(event, PutOff):
            await self._journal(live, f"put off/{event.calls[0]}", live.said.put_off(event.calls))
            return
        live.said.add(event)
        if isinstance(event, ToolResult):
            await self._journal(live, event.id, live.said.done(event))
        elif isinstance(event, ToolCall):
            stream.grew(event.name)
        elif isinstance(event, Text):
            stream.grew()
            if live.run.turns[0].kind is self._sequel.kind:
                await self._grew(live)

    def _hung(self, live: Running, whole: asyncio.Timeout) -> Hung | None:
        """The error of an agent that took too long; None if something of its own did."""
        if whole.expired():
            return Hung(f"the agent wasn't done after {self._settings.turn_total:g} s")
        if live.silence is not None and live.silence.expired():
            return Hung(f"the agent said nothing for {self._settings.turn_silence:g} s")
        return None

    async def _grew(self, live: Running) -> None:
        """Tell what hangs on the answer that it grows, now and then."""
        at, run = self._clock(), live.run
        if live.told is None:
            live.told = at
            live.telling = asyncio.create_task(self._first_words(run))
        elif at - live.told > self._sequel.pace:
            live.told = at
            await self._store.write(self._sequel.grew, run.held.session, run.name, at)

    async def _first_words(self, run: Run) -> None:
        """Tell that the agent writes, unless it is done in a moment: that is the better news."""
        await asyncio.sleep(_MOMENT)
        await self._store.write(self._sequel.grew, run.held.session, run.name, self._clock())

    async def _journal(self, live: Running, key: str, parts: Parts) -> None:
        run = live.run
        await self._store.write(turns.journal, run.held, run.name, key, parts, self._clock())
        self._probe(Point.TURN_JOURNALED)

    async def meanwhile(self, live: Running) -> None:
        """The speaker said more while their turn runs: steer it, or end it."""
        first = live.run.turns[0]
        if first.kind not in SPOKEN:
            return
        last = max(turn.seq for turn in (*live.run.turns, *live.taken_in))
        waiting = await self._store.read(turns.waiting, live.run.held.session, 100, last)
        more = [turn for turn in waiting if turn.person == first.person and turn.kind is TurnKind.ARRIVAL]
        if self._settings.busy is Busy.INTERRUPT:
            if more:
                live.stop()
            return
        # An answer goes where it was asked for: what was said in another place is answered there.
        more = [turn for turn in more if turn.lane == first.lane]
        if not more:
            return
        drafts = await self._prompt.heard(tuple(draft_of(turn) for turn in more))
        if isinstance(live.agent, Steers) and live.work and await live.agent.steer(live.work, drafts):
            live.taken_in += more

    async def _write(self, live: Running, done: Finish) -> Run | None:
        """Write all that a turn leaves behind."""
        run, at = live.run, self._clock()
        owed = self._owed(live, done) if run.owes is not None else None
        kind, state = run.turns[0].kind, live.state
        done = replace(done, kind=kind, owed=owed, agent=live.agent_name, state=state, reserved=live.reserved)
        if live.beneath is not None:
            done = replace(done, beneath=live.beneath.sessions(run, live.agent_name, self._ground.ids))
        try:
            finished = await self._finish(live, done, at)
        except Fenced:
            # An earlier try may have been committed though nobody heard of it.
            await self._store.write(turns.left_behind, run.held, run.name)
            raise
        self._probe(Point.TURN_FINISHED)
        self._prompt.transcripts.go_on(live.begun.path, run, done, finished, at)
        if state is not None:
            seen = nowhere(run.held.session) if finished.hidden else finished.tip
            self._agents.keep(run, live.agent_name, note(state, seen))
        if live.title:
            await self._store.write(titles.suggest, run.held.session, live.title, at)
        self._metrics.turns.labels(done.outcome).inc()
        self._metrics.turn_seconds.observe(self._clock() - run.turns[0].accepted)
        return finished.next

    async def _finish(self, live: Running, done: Finish, at: Moment) -> Finished:
        """End a turn, and send its answer at once if it may be."""
        run, outbox = live.run, self._outboxes.get(live.account)
        if live.asked:
            return await self._store.write(questions.finish, run.held, done, self._sequel, at)
        if done.kind is self._sequel.kind:
            return await self._store.write(self._sequel.finish, run.held, done, at)
        sends = outbox is not None and outbox.free
        finished = await self._store.write(turns.finish, run.held, done, at, sends=sends)
        if outbox is not None:
            for held in finished.taken:
                outbox.send(held)
        return finished

    def _owed(self, live: Running, done: Finish) -> Owed | None:
        """The result of a session that was started for one task, for its parent."""
        run, first = live.run, live.run.turns[0]
        if run.owes is None:
            return None
        answers = done.drafts[len(live.begun.asked) + len(live.taken_in) :]
        text = "\n\n".join(draft.text for draft in answers if draft.text) or NOTHING_SAID
        cause = first.cause or f"{run.held.session}/{run.name}"
        return Owed(run.owes, text, first.person, cause, first.trace)

    async def fail(self, live: Running, error: BaseException) -> tuple[Run | None, float | None]:
        """The agent failed: again after so many seconds, or an honest error once it has failed too often."""
        run = live.run
        found, failed = failure(error), run.fails + 1
        # The error's words may quote what somebody said: its name and its place say enough.
        said = {"failure": type(error).__name__, "where": found.where}
        with traced(run.turns[0].trace):
            # An agent that names its trouble needs no traceback.
            traceback = None if isinstance(error, AgentFailed) else error
            log.warning("turn %s of session %s failed", run.name, run.held.session, extra=said, exc_info=traceback)
        try:
            if found.passes and failed < self._settings.attempts and run.deaths < self._settings.deaths:
                delay = min(_LONGEST_BACKOFF, 0.5 * 2**run.fails)
                await self._store.write(turns.let_go, run.held, 1, delay, run.name, tuple(live.spent), self._clock())
                return None, delay
            text = found.told(failed if run.deaths < self._settings.deaths else run.deaths)
            asked, person = run.turns[0], PersonId(run.turns[0].person)
            who = asked.lane, person, asked.identity, self._hosts
            if await self._store.read(readers.hosts_own, run.held.session, asked.seq, *who):
                text = found.told_host
            line: Parts = (Notice(text), SetAside()) if found.refused else (Notice(text),)
            drafts = (*live.begun.asked, Draft(GATEWAY, line))
            replies = replies_to(run, (), text, len(drafts), None)
            seqs = tuple(turn.seq for turn in run.turns)
            onto, spent = live.begun.onto, tuple(live.spent)
            done = Finish(seqs, drafts, replies, spent, Outcome.FAILED, repr(error)[:500], onto)
            return await self._write(live, done), None
        except Fenced as fenced:
            log.warning("%s", fenced)
            return None, None

    async def hand_over(self, live: Running) -> None:
        """Let a session go for others to take at once, however long the store takes: nobody else would look for it."""
        run, at = live.run, self._clock()
        try:
            began, spent = live.answering is not None, tuple(live.spent)
            await self._store.write(turns.let_go, run.held, 0, 0.0, run.name, spent, at, began=began)
        except Fenced as error:
            log.warning("session %s wasn't handed over: %s", run.held.session, error)
