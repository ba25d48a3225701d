"""Turns: sessions are claimed, the agent answers, and all that a turn leaves behind is written at once.

Law: one turn at a time per session, in order; sessions never wait for each other, only for a free slot. A turn that
this replica lost is dropped where it stands: the fence refuses its writes. Nobody but the host has more than a quarter
of the slots, and all the others together leave a quarter to the host.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from segue.changes.exchange import turns
from segue.core.contracts.agents import Agent
from segue.core.settings import Busy
from segue.core.turns import SUSPECT, Room, Run
from segue.core.values import SessionId
from segue.errors import Fenced
from segue.runtime.parts import Ground
from segue.runtime.replica import Pause
from segue.runtime.telemetry.logs import traced
from segue.runtime.tools import Toolbox
from segue.runtime.turns.agents import Agents
from segue.runtime.turns.answering import Answering, Outboxes
from segue.runtime.turns.prompt import Prompt
from segue.runtime.turns.running import Running, cancelled

log = logging.getLogger(__name__)

_SHARE = 4
_NOBODY = "-"
_HANDING_OVER = 1.0
"""Seconds that a gateway that ends takes to hand its sessions over."""


class Slots:
    """Counts the slots that are taken, and by whom."""

    def __init__(self, count: int, wake: Pause) -> None:
        self._wake = wake
        self._share = max(1, count // _SHARE)
        self._kept = count // _SHARE
        self._taken: Counter[str] = Counter()
        self.free = count
        """Slots that nobody has; below none while somebody who waited for another session goes on."""
        self.host = ""
        """The host's id as a person, once it is known."""
        self.suspects: set[SessionId] = set()
        """Sessions whose turns run here and are tried apart, and those that waited meanwhile and go on."""

    @property
    def open(self) -> int:
        """Slots that may be taken now, be it by the host alone."""
        return self.free - self._kept if self.free > self._kept else self.free

    @property
    def room(self) -> Room:
        """Who may have a slot now."""
        only = (self.host or _NOBODY) if 0 < self.free <= self._kept else ""
        return Room(self._share, dict(self._taken), self.host, only, bool(self.suspects))

    def take(self, person: str) -> None:
        """A slot is this person's from now on."""
        self.free -= 1
        self._taken[person] += 1

    def leave(self, person: str) -> None:
        """The slot is free; whoever may wait for it is woken."""
        if self.free <= self._kept or self._taken[person] == self._share:
            self._wake.set()
        self.free += 1
        self._taken[person] -= 1
        if not self._taken[person]:
            del self._taken[person]


class Turns:
    """Runs the turns of the sessions that this replica holds."""

    def __init__(
        self, ground: Ground, agents: Mapping[str, Agent], toolbox: Toolbox, prompt: Prompt, outboxes: Outboxes
    ) -> None:
        self._store = ground.store
        self._replica = ground.replica
        self._settings = ground.settings
        self._prompt, self._agents = prompt, Agents(ground.store, agents, ground.settings)
        self._answering = Answering(ground, self._agents, toolbox, prompt, self.waiting, outboxes)
        self._live: dict[SessionId, Running] = {}
        self._tasks: dict[asyncio.Task[None], str | None] = {}
        """Running tasks, and whose slot each has."""
        self._sessions: dict[asyncio.Task[None], SessionId] = {}
        """The session that each task runs or hands over."""
        self.wake = Pause(ground.settings.poll)
        self._slots = Slots(ground.settings.slots, self.wake)
        self.open = False
        """Whether turns begin here."""
        self._behind: float | None = None
        """Since when sessions wait for a slot, by the event loop's clock; None while none does."""

    @property
    def running(self) -> int:
        """Turns that run here now."""
        return len(self._tasks)

    @property
    def sessions(self) -> frozenset[SessionId]:
        """Sessions that run here now, or are being handed over."""
        return frozenset(self._sessions.values())

    @property
    def lag(self) -> float:
        """Seconds for which sessions wait until there is a slot for them."""
        return 0.0 if self._behind is None else time.monotonic() - self._behind

    def turned_away(self) -> None:
        """A session waits because no slot was left for it."""
        if self._behind is None:
            self._behind = time.monotonic()

    def knows_host(self, person: str) -> None:
        """The host is this person."""
        if person != self._slots.host:
            self._slots.host = person
            self.wake.set()

    def forget(self) -> None:
        """Let go of all words that are kept in memory."""
        self._prompt.forget()
        self._agents.clear()

    def forget_hidden(self, session: SessionId) -> None:
        """Drop the transcripts that lead through a session: something in it was hidden, or is shown again.

        The notes of agents are read again in all sessions: those of a branch rest on the session that it left.
        """
        self._prompt.forget_hidden(session)
        self._agents.clear()

    def reserve(self) -> tuple[str | None, Room]:
        """Take a slot for a session that may be claimed.

        Returns this replica's id, None if no slot is free, and who may have one now.
        """
        room, me = self._slots.room, self._replica.id if self.open and self._slots.free > 0 else None
        if me is not None:
            self._slots.free -= 1
        return me, room

    def give_back(self) -> None:
        """A slot isn't needed after all."""
        self._slots.free += 1
        if self._slots.open == 1:
            # Somebody may wait for it; as long as others were free, nobody did.
            self.wake.set()

    def start(self, run: Run) -> None:
        """Run a session's turns, in a slot that was reserved."""
        self._slots.free += 1
        first = run.turns[0]
        if not (self.open and self._slots.room.takes(first.person)):
            # So many came in at once that nobody knew of the others: they wait like all that come later. Or it stops.
            task = asyncio.create_task(self._answering.hand_over(Running(run)))
            self._tasks[task] = None
        else:
            self._slots.take(first.person)
            task = asyncio.create_task(self._serve(run), name=f"session {run.held.session}")
            self._tasks[task] = first.person
            if run.deaths >= SUSPECT:
                self._slots.suspects.add(run.held.session)
                task.add_done_callback(lambda _: self._tried(run))
        self._sessions[task] = run.held.session
        task.add_done_callback(self._ended)

    async def claim(self) -> None:
        """Take sessions that nobody holds, until cancelled."""
        while True:
            count, room = self._slots.open, self._slots.room
            if self.open and count > 0 and await self._claim(count, room):
                continue
            if self._behind is not None and (room.only or count <= 0):
                self._wait(await self._store.read(turns.longest_wait, room))
            await self.wake.wait()

    async def _claim(self, count: int, room: Room) -> bool:
        """Claim and start up to so many sessions; return whether more may wait."""
        runs: list[Run] = []
        self._slots.free -= count
        try:
            runs = await self._store.write(turns.claim, self._replica.id, count, room)
        finally:
            self._slots.free += count - len(runs)
        if not room.only:
            self._wait(min(run.waited for run in runs) if len(runs) == count else 0.0)
        for run in runs:
            self.start(run)
        return len(runs) == count

    def _wait(self, seconds: float) -> None:
        """Sessions have waited for a slot for so long; none does if it is 0."""
        self._behind = time.monotonic() - seconds if seconds else None

    async def look(self, session: SessionId) -> None:
        """Something changed for the turn that runs in a session: somebody wants it to end, or said more."""
        live = self._live.get(session)
        if live is None:
            return
        live.changed.set()
        if await self._store.read(turns.stopped, session):
            live.stop()
        elif live.answering is not None and await self._store.read(turns.lost, live.run.held):
            live.dropped = True
            live.answering.cancel()
        elif self._settings.busy is not Busy.QUEUE:
            await self._answering.meanwhile(live)

    async def drain(self, grace: float) -> None:
        """Let running turns finish for a while; hand the rest over, at once what waits for somebody's answer."""
        for live in list(self._live.values()):
            if live.asks and live.answering is not None:
                live.dropped = True
                live.answering.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace)
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)

    @asynccontextmanager
    async def waiting(self, run: Run) -> AsyncIterator[None]:
        """While a turn waits for an answer or for another session it has no slot, and isn't what is tried apart."""
        person, suspect = run.turns[0].person, run.held.session in self._slots.suspects
        self._slots.leave(person)
        self._tried(run)
        try:
            yield
        finally:
            # What was running goes on at once; the slot is paid back by the next claims.
            self._slots.take(person)
            if suspect:
                self._slots.suspects.add(run.held.session)

    def _ended(self, task: asyncio.Task[None]) -> None:
        person, _ = self._tasks.pop(task), self._sessions.pop(task)
        if person is not None:
            self._slots.leave(person)
        if not task.cancelled() and (error := task.exception()):
            log.error("a turn failed in a way that nobody foresaw", exc_info=error)

    def _tried(self, run: Run) -> None:
        """A turn is over, or does nothing but wait: if it was tried apart, the next one may be tried."""
        if run.held.session in self._slots.suspects:
            self._slots.suspects.discard(run.held.session)
            self.wake.set()

    def _goes_on(self, run: Run) -> bool:
        """Whether a session's next turn may have the slot of the one before, which may have been another person's."""
        task, person = asyncio.current_task(), run.turns[0].person
        before = self._tasks.get(task) if task else None
        if task is None or before == person:
            return True
        if before is not None:
            self._slots.leave(before)
        goes_on = self._slots.room.takes(person)
        self._tasks[task] = person if goes_on else None
        if goes_on:
            self._slots.take(person)
        return goes_on

    async def _serve(self, run: Run | None) -> None:
        while run is not None:
            live = self._live[run.held.session] = Running(run)
            try:
                with traced(run.turns[0].trace):
                    run = await self._answering.answer(live)
                self._tried(live.run)
            except Fenced as error:
                log.warning("%s", error)
                return
            except asyncio.CancelledError as error:
                if live.dropped or cancelled():
                    # A gateway that ends waits for no store: what it still holds is free once it is known to be gone.
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_HANDING_OVER):
                            await self._answering.hand_over(live)
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
            if run is not None and not (self.open and self._goes_on(run)):
                await self._answering.hand_over(Running(run))
                return

    async def _fail(self, live: Running, error: BaseException) -> Run | None:
        """Write down that a turn failed; if it is tried again, look for it then."""
        run, delay = await self._answering.fail(live, error)
        if delay is not None:
            asyncio.get_running_loop().call_later(delay, self.wake.set)
        return run
