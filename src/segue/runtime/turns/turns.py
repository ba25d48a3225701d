"""Turns: sessions are claimed, the agent answers, and all that a turn leaves behind is written at once.

Law: one turn at a time per session, in order; sessions never wait for each other, only for a free slot. A turn that
this replica lost is dropped where it stands: the fence refuses its writes.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from segue.changes.exchange import turns
from segue.core.contracts.agents import Agent
from segue.core.settings import Busy
from segue.core.turns import Run
from segue.core.values import SessionId
from segue.errors import Fenced
from segue.runtime.parts import Ground
from segue.runtime.replica import Pause
from segue.runtime.telemetry.logs import traced
from segue.runtime.tools import Toolbox
from segue.runtime.turns.answering import Answering
from segue.runtime.turns.prompt import Prompt
from segue.runtime.turns.running import Running, cancelled

log = logging.getLogger(__name__)


class Turns:
    """Runs the turns of the sessions that this replica holds."""

    def __init__(self, ground: Ground, agent: Agent, toolbox: Toolbox, prompt: Prompt) -> None:
        self._store = ground.store
        self._replica = ground.replica
        self._settings = ground.settings
        self._answering = Answering(ground, agent, toolbox, prompt, self.waiting)
        self.transcripts = prompt.transcripts
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
            await self._answering.meanwhile(live)

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
                    run = await self._answering.answer(live)
            except Fenced as error:
                log.warning("%s", error)
                return
            except asyncio.CancelledError as error:
                if live.dropped or cancelled():
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

    async def _fail(self, live: Running, error: BaseException) -> Run | None:
        """Write down that a turn failed; if it is tried again, look for it then."""
        run, delay = await self._answering.fail(live, error)
        if delay is not None:
            asyncio.get_running_loop().call_later(delay, self.wake.set)
        return run
