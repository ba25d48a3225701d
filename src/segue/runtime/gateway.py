"""The gateway: adapters, an agent and a store put together; the one composition root."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from segue.agents.builtin.agent import Builtin
from segue.agents.given import Given, as_agents
from segue.changes import audit
from segue.changes.accept import FrontDoor
from segue.changes.audit import Event, Fact
from segue.changes.commands import Commands
from segue.changes.exchange.handoffs import OpeningSequel
from segue.changes.exchange.planner import Planner
from segue.changes.people import grants
from segue.changes.people.access import Access
from segue.core.accounts import Health, Reach
from segue.core.commands import SPECS, Spec
from segue.core.contracts.adapters import (
    Accept,
    Accepted,
    Adapter,
    Arrived,
    Files,
    HasTroubles,
    TakesLargeBodies,
    TakesWebhooks,
)
from segue.core.contracts.agents import HasCommands, NoFiles
from segue.core.contracts.database import Clock
from segue.core.contracts.files import FileStore
from segue.core.contracts.lockers import Remembers
from segue.core.contracts.probes import Probe
from segue.core.contracts.wakes import Topic
from segue.core.lanes import Lane, Person, account_key
from segue.core.settings import GatewaySettings
from segue.core.values import PersonId, SessionId
from segue.core.windows import PROGRAM, ShowsWindows
from segue.database.none import Absent
from segue.database.transactions import unheeded
from segue.errors import Fenced, StoreError
from segue.runtime.files.delivery import Exporting
from segue.runtime.files.folder import Folder
from segue.runtime.forgetting import Cleaner, Retaining
from segue.runtime.handoffs import Handoffs
from segue.runtime.inbox import Inbox
from segue.runtime.indexing import SearchIndexer
from segue.runtime.intake import Life, OwnLocker, lines_of
from segue.runtime.invitations import Invitation, Inviting
from segue.runtime.lifecycle.accept_health import AcceptHealth
from segue.runtime.lifecycle.failures import Failures
from segue.runtime.lifecycle.supervisor import Loop, Supervisor
from segue.runtime.outbox import Outbox
from segue.runtime.parts import Ground
from segue.runtime.pruning import Pruner
from segue.runtime.replica import Replica
from segue.runtime.resets import Sweep
from segue.runtime.retrying import Patient
from segue.runtime.schedules import Schedules
from segue.runtime.server.tokens import Tokens
from segue.runtime.telemetry.metrics import Metrics
from segue.runtime.telemetry.soundness import Soundness
from segue.runtime.telemetry.spans import Tracing
from segue.runtime.telemetry.watchdog import Watchdog
from segue.runtime.threads import ThreadTitles
from segue.runtime.tools import Toolbox
from segue.runtime.tools.asking import ASK
from segue.runtime.tools.children import Children
from segue.runtime.tools.messages import Messages
from segue.runtime.tools.notes import NoteTools
from segue.runtime.tools.programs import Programs
from segue.runtime.tools.reading import Reading
from segue.runtime.tools.schedules import Scheduling
from segue.runtime.turns.prompt import Prompt
from segue.runtime.turns.stranded import Stranded
from segue.runtime.turns.turns import Turns
from segue.runtime.windows.local import Watched
from segue.runtime.windows.watchers import Changed, Forgotten, HandoffMoved, SomethingAsked, Watches
from segue.store import Store, fresh_ids

log = logging.getLogger(__name__)

_LEAVING = 5.0
"""Seconds that a gateway that stops takes beside the grace of its turns: then it leaves what is not done."""


class Gateway:
    """Takes messages in, has them answered and sends the answers, until it is stopped.

    `async with Gateway(store, agent)` runs it. Any number of them, in as many processes, may share one database. One
    without a store is for `segue serve MODULE:NAME`, which adds what the host's settings say.
    """

    def __init__(
        self,
        store: Store | None = None,
        agent: Given | Mapping[str, Given] | None = None,
        adapters: Sequence[Adapter] = (),
        settings: GatewaySettings | None = None,
        *,
        clock: Clock = time.time,
        tracing: Tracing | None = None,
        files: Files | None = None,
        probe: Probe = unheeded,
    ) -> None:
        self.store = store or Store(Absent())
        self.agents = as_agents(agent if agent is not None else Builtin())
        self.adapters = tuple(adapters)
        self.settings = settings or GatewaySettings()
        self.metrics = Metrics()
        self.watches = Watches()
        self.clock, self.tracing, self.files = clock, tracing, files
        self._clock = clock
        self._ids = fresh_ids(clock)
        self._adapters = {(adapter.platform, adapter.account): adapter for adapter in adapters}
        self.patient = Patient(self.store.driver, self.metrics.store_failed)
        self._access = access = Access(self.settings, self._ids)
        self.tokens = Tokens(self.patient, access.still, clock)
        self._failures = Failures(self.metrics.failed)
        self._supervisor = Supervisor(self._failures)
        self._replica = Replica(self.patient, self._ids, self.settings.lease)
        ground = self._ground(tracing, probe)
        planner = Planner(self._places(), self.settings)
        self._messages = Messages(ground)
        prompt = Prompt(self.patient, self._adapters, self.settings, clock, files or NoFiles())
        self._outboxes = {a: Outbox(ground, one, Exporting(self.patient, files)) for a, one in self._adapters.items()}
        self._turns = Turns(ground, self.agents, box := self._toolbox(ground, planner, prompt), prompt, self._outboxes)
        self._stranded = Stranded(ground, self._turns, self._outboxes.values())
        self._commands = self._typed()
        self.programs = self._served(ground, box)
        self._inbox = Inbox(self.store.driver, ground, self._turns, self._door(access))
        self._accepting = AcceptHealth(self._inbox, self.store.driver, self._ids(), self.settings.poll)
        self._handoffs = Handoffs(ground)
        file_store = files if isinstance(files, FileStore) else _folder_of(self.settings)
        self._schedules = Schedules(ground, planner, access.still, file_store)
        self._sweep = Sweep(self.patient, self.agents, self.settings, clock, self._ids, self._failures)
        self._lives = self._connected()
        self._cleaner, self._soundness = self._made_cleaner(file_store), Soundness(self.store.driver)
        self._ears = self._listeners(ThreadTitles(ground, lambda: self.accounts))
        self._spawned: set[asyncio.Task[None]] = set()
        self._main: asyncio.Task[None] | None = None
        self._unlisten: Callable[[], None] | None = None

    def _ground(self, tracing: Tracing | None, probe: Probe) -> Ground:
        return Ground(
            self.patient,
            self._adapters,
            self._replica,
            self.settings,
            self._clock,
            self._ids,
            self.metrics,
            tracing,
            self.watches,
            probe,
            OpeningSequel(self.settings.handoff),
            self._failures,
        )

    def _connected(self) -> list[Life]:
        """The connections that adapters need, and lockers; windows come by themselves."""
        for adapter in self.adapters:
            if isinstance(adapter, Remembers):
                adapter.remember(OwnLocker(self.patient, adapter))
        return [
            Life(self.patient, adapter, self._replica, self._accepting.accept, self.settings.poll, self.commands, line)
            for adapter in self.adapters
            if not isinstance(adapter, ShowsWindows)
            for line in lines_of(adapter)
        ]

    def _door(self, access: Access) -> FrontDoor:
        having = [agent for agent in self.agents.values() if isinstance(agent, HasCommands)]
        # Asked anew each time: an agent may learn its commands while it runs.
        return FrontDoor(
            self.settings,
            access.judge,
            self._commands.run,
            lambda word: any(word in agent.commands for agent in having),
        )

    def _made_cleaner(self, files: FileStore | None) -> Cleaner:
        about = self._adapters, self.settings, self._clock, self._failures
        return Cleaner(self.patient, *about, self._let_go, self.metrics.swept, files)

    def _listeners(self, thread_titles: ThreadTitles) -> Mapping[str, Callable[[str], None]]:
        """Connect wake-ups to the parts that hear them, and gauges to the figures that they read."""
        self.metrics.watch(
            running=lambda: self._turns.running,
            slots=self.settings.slots,
            lease_left=lambda: self._replica.left,
            refused=lambda: self.patient.refused,
        )
        return {
            Topic.TURNS: lambda _: self._turns.wake.set(),
            Topic.DELIVERIES: self._send,
            Topic.CONNECTIONS: self._connect,
            Topic.SAID: lambda session: self.watches.tell(SessionId(session), Changed()),
            Topic.HANDOFF: self._handoff_moved,
            Topic.HIDDEN: lambda session: self._turns.forget_hidden(SessionId(session)),
            Topic.FORGOTTEN: lambda _: self._cleaner.wake.set(),
            Topic.LETTERS: lambda _: self._inbox.wake.set(),
            Topic.LOOK: self._look,
            Topic.ASKED: lambda _: self.watches.tell(Topic.ASKED, SomethingAsked()),
            Topic.NOTED: self.metrics.noted,
            Topic.NAMED: lambda session: self._spawn("A thread's title", thread_titles.tell(SessionId(session))),
            Topic.BEGUN: lambda person: self._spawn("Closing old sessions", self._sweep.bound(PersonId(person))),
        }

    def _toolbox(self, ground: Ground, planner: Planner, prompt: Prompt) -> Toolbox:
        """The tools of agents."""
        children, reading = Children(ground), Reading(ground.store, prompt)
        scheduling = Scheduling(ground.store, planner, prompt, ground.clock, ground.ids)
        noting = NoteTools(ground.store, self.settings, ground.clock, ground.ids)
        offers = (*children.offers, *self._messages.offers, *reading.offers, *scheduling.offers, ASK)
        return Toolbox(offers, noting.offers)

    def _served(self, ground: Ground, toolbox: Toolbox) -> Programs:
        """The tools of programs."""
        agent, handoff = next(iter(self.agents)), self._commands.handoffs
        return Programs(ground, toolbox.with_notebook.values(), self._messages, handoff, agent)

    async def __aenter__(self) -> Self:
        await self._unite()
        await self._end_astray()
        await self._replica.join()
        self._unlisten = self.store.driver.listen(self._heard)
        self._inbox.open = self._turns.open = True
        self._main = asyncio.create_task(self._live(), name="gateway")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Stop gracefully: nothing more comes in, running turns get a while, the rest goes to the others."""
        main, self._main = self._main, None
        if main is None:
            return
        self._turns.open = False
        grace, moment = self.settings.grace, min(self.settings.grace, 2.0)
        until = asyncio.get_running_loop().time() + grace + _LEAVING
        await _by(until, self._inbox.close(grace))
        await _by(until, self._turns.drain(grace))
        # What was just answered gets a moment to be sent.
        await _by(until, *(outbox.flush(moment) for outbox in self._outboxes.values()))
        # A database that is gone is waited for no more: the others take over when the lease ends.
        self.patient.close()
        await self._supervisor.stop(main, _LEAVING)
        # A claim that was on its way may have brought something.
        await _by(asyncio.get_running_loop().time() + _LEAVING, self._turns.drain(0.0))
        for task in self._spawned:
            task.cancel()
        if self._unlisten is not None:
            self._unlisten()
        with contextlib.suppress(TimeoutError, StoreError):
            async with asyncio.timeout(self.settings.lease):
                await self._replica.leave()

    async def ended(self) -> None:
        """Wait until it ends by itself, which only a bug can make it do; raises what it ended by."""
        if self._main is not None:
            await asyncio.shield(self._main)

    async def accept(self, arrival: Arrived) -> Accepted:
        """Make an arrival durable; when this returns it may be acknowledged."""
        return await self._accepting.accept(arrival)

    async def invite(self, lane: Lane, person: Person) -> Invitation | None:
        """A way to take a lane's conversation along to another platform."""
        inviting = Inviting(self.store.driver, self._adapters, self._clock, self._failures)
        return await inviting.invite(lane, person)

    def webhooks(self) -> list[tuple[str, Callable[..., Awaitable[None]]]]:
        """The webhooks that platforms call, by path."""
        accept: Accept = self.accept
        return [
            (f"/in/{adapter.platform}/{adapter.account}", adapter.webhook(accept))
            for adapter in self._adapters.values()
            if isinstance(adapter, TakesWebhooks)
        ]

    @property
    def largest_bodies(self) -> dict[str, int]:
        """Bytes of a body at the paths of adapters that take more than others."""
        return {
            f"/in/{adapter.platform}/{adapter.account}": adapter.largest_body
            for adapter in self._adapters.values()
            if isinstance(adapter, TakesLargeBodies)
        }

    @property
    def commands(self) -> list[Spec]:
        """The commands that people can type."""
        return list(SPECS)

    def _places(self) -> dict[tuple[str, str], Adapter]:
        """The adapters of places that a conversation can go to: programs are none."""
        return {account: adapter for account, adapter in self._adapters.items() if account[0] != PROGRAM}

    def _typed(self) -> Commands:
        me, health = (lambda: self._replica.id), (lambda: self.accounts)
        return Commands(self.settings, self._ids, self._places(), self.problems, me, health, tuple(self.agents))

    @property
    def ready(self) -> bool:
        """Whether it takes messages in."""
        return self._inbox.open and self._replica.left > 0 and not (self.patient.trouble or self._accepting.problem)

    @property
    def accounts(self) -> dict[str, Health]:
        """The health of each account, by its name: whether messages come, and whether they go."""
        found: dict[str, Health] = {}
        for life in self._lives:
            found[life.name] = life.health.beside(found.get(life.name, life.health))
        for (platform, account), outbox in self._outboxes.items():
            health = found.get(name := f"{platform}.{account}")
            if health is not None and health.reach is not Reach.BROKEN and (why := outbox.outlet.trouble):
                found[name] = Health(Reach.BROKEN, why)
            outward = outbox.meter.trouble or outbox.trouble
            if health is not None and health.reach is Reach.CONNECTED and (why := outward):
                found[name] = Health(Reach.CONNECTED, why)
        for adapter in self.adapters:
            if isinstance(adapter, HasTroubles) and (troubles := adapter.troubles):
                name = f"{adapter.platform}.{adapter.account}"
                if found[name].reach is Reach.CONNECTED:
                    found[name] = Health(Reach.CONNECTED, " ".join(troubles))
        return found

    @property
    def dead_letters(self) -> int:
        """Messages that couldn't be taken in or sent, counted lately."""
        return self._inbox.dead

    def audit_unproven(self, path: str, calls: int) -> None:
        """Have calls with a wrong signature, secret or token written to the audit."""
        fact = Fact(Event.REFUSED, detail=f"unproven calls to {path}")
        self._spawn(f"audit of {path}", self.store.driver.write(audit.note, fact, self._clock(), calls))

    def problems(self) -> list[str]:
        """The troubles that keep it from its work now."""
        broken = [f"{name} {health.words}" for name, health in self.accounts.items() if health.reach is Reach.BROKEN]
        found = [
            self.patient.trouble or self._accepting.problem,
            self._soundness.trouble,
            *broken,
            *self._failures.problems,
        ]
        if self._main is not None and self._main.done():
            found.append("The gateway has stopped. See its log for why.")
        if self._inbox.open and self._inbox.overloaded:
            found.append("More comes in than can be done: messages are refused until answers catch up.")
        if self._inbox.open and self._replica.left < 0 and not self.patient.trouble:
            found.append("The database hasn't taken a heartbeat in time. See whether its disk or server answers.")
        return [problem for problem in found if problem]

    async def _unite(self) -> None:
        """Make all who speak for the host one person, whoever they were before the settings said so."""
        hosts = self.settings.hosts
        host = await self.patient.write(grants.unite, hosts, [self._ids() for _ in hosts[1:]], self._clock())
        self._turns.knows_host(host or "")

    async def _end_astray(self) -> None:
        """End turns whose people may talk no more where they asked, since the settings changed."""
        still = self._access.still
        for person in await self.patient.read(grants.astray, still):
            await self.patient.write(grants.end_turns, person, still, self._clock())

    async def _live(self) -> None:
        """Do everything at once; under a new id again if this replica was taken for dead."""
        while True:
            try:
                await self._supervisor.run(self._loops())
            except* Fenced:
                log.warning("lost the lease after missed heartbeats; rejoining under a new replica id")
                await self._turns.drain(0.0)
                await self._supervisor.supervised(Loop("join", self._replica.join))

    def _loops(self) -> list[Loop]:
        watched = Watched(self.patient, self.adapters, self._replica, self.settings.poll)
        pruner = Pruner(self.patient, self._adapters, self.settings, self._clock, self._failures)
        retaining = Retaining(self.patient, self.settings, self._clock, self._failures)
        leftovers = [Loop("leftovers", self._cleaner.leftovers.run)] if self._cleaner.leftovers is not None else []
        outboxes = [Loop(f"outbox of {'.'.join(account)}", box.run) for account, box in self._outboxes.items()]
        return [
            Loop("beat", self._replica.beat),
            Loop("watchdog", Watchdog(self.metrics).run),
            Loop("soundness", self._soundness.run),
            Loop("claim", self._turns.claim),
            Loop("stranded", self._stranded.run),
            Loop("index", SearchIndexer(self.patient, self._failures).run),
            Loop("prune", pruner.run),
            Loop("cleaner", self._cleaner.run),
            *leftovers,
            Loop("letters", self._inbox.run),
            Loop("accept health", self._accepting.run),
            Loop("retention", retaining.run),
            Loop("answers", self._messages.sweep),
            Loop("resets", self._sweep.run),
            Loop("schedules", self._schedules.run),
            Loop("handoffs", self._handoffs.run),
            Loop("windows", watched.run),
            *outboxes,
            *(Loop(life.name, life.run) for life in self._lives),
        ]

    def _let_go(self) -> None:
        """Let go of the words that are kept in memory: something was forgotten."""
        self._turns.forget()
        self.watches.tell_all(Forgotten())

    def _heard(self, text: str) -> None:
        """Wake whoever a wake-up is for; if some were lost, or nobody knows its topic, everybody who has a loop."""
        topic, _, about = text.partition(" ")
        if topic in self._ears:
            self._ears[topic](about)
        else:
            self._turns.forget()
            self._turns.wake.set()
            self._handoffs.wake.set()
            self._cleaner.wake.set()
            self._send("")
            self._connect("")

    def _send(self, account: str) -> None:
        for (platform, name), outbox in self._outboxes.items():
            if account in ("", account_key(platform, name)):
                outbox.wake.set()

    def _connect(self, _: str) -> None:
        for life in self._lives:
            life.wake.set()

    def _handoff_moved(self, session: str) -> None:
        self._handoffs.wake.set()
        self._turns.wake.set()
        self._send("")
        self.watches.tell(SessionId(session), HandoffMoved())
        self._look(session)

    def _look(self, session: str) -> None:
        self._spawn("A look at a running turn", self._turns.look(SessionId(session)))

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside the loops; it ends with the gateway."""
        task = asyncio.create_task(work, name=name)
        self._spawned.add(task)
        task.add_done_callback(self._spawn_ended)

    def _spawn_ended(self, task: asyncio.Task[None]) -> None:
        self._spawned.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self._failures.worked(task.get_name())
        elif isinstance(error, Exception):
            self._failures.failed(task.get_name(), error)


async def _by(deadline: float, *steps: Coroutine[Any, Any, object]) -> None:
    """Do these steps of a stop, but no longer than to the deadline."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout_at(deadline):
            await asyncio.gather(*steps)


def _folder_of(settings: GatewaySettings) -> FileStore | None:
    return Folder(Path(settings.data)) if settings.data else None
