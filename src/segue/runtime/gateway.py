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
from segue.changes.commands import Commands
from segue.changes.exchange import letters, questions
from segue.changes.exchange.handoffs import OpeningSequel
from segue.changes.exchange.planner import Planner
from segue.changes.people import browsers, codes, grants, strangers, tokens
from segue.changes.people.access import Access
from segue.changes.places import merges
from segue.changes.sessions import search
from segue.core.accounts import Health, Reach
from segue.core.commands import SPECS, Spec
from segue.core.contracts.adapters import Accept, Accepted, Adapter, Arrived, Files, HasTroubles, TakesWebhooks
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
from segue.errors import Fenced
from segue.runtime.files.delivery import Exporting
from segue.runtime.files.folder import Folder
from segue.runtime.forgetting import Cleaner, Retaining
from segue.runtime.handoffs import Handoffs
from segue.runtime.inbox import Inbox
from segue.runtime.intake import Life, OwnLocker, lines_of
from segue.runtime.invitations import Invitation, Inviting
from segue.runtime.outbox import Outbox
from segue.runtime.parts import Ground
from segue.runtime.replica import Replica
from segue.runtime.resets import Sweep
from segue.runtime.retrying import Patient
from segue.runtime.schedules import Schedules
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

_INDEX_PACE = 1.0
_INDEX_BATCH = 64
_FORGET_PACE = 600.0


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
        self._clock = clock
        self._ids = fresh_ids(clock)
        self._adapters = {(adapter.platform, adapter.account): adapter for adapter in adapters}
        self._patient = Patient(self.store.driver, self.metrics.store_failed)
        self._replica = Replica(self._patient, self._ids, self.settings.lease)
        ground = Ground(
            self._patient,
            self._adapters,
            self._replica,
            self.settings,
            clock,
            self._ids,
            self.metrics,
            tracing,
            self.watches,
            probe,
            OpeningSequel(self.settings.handoff),
        )
        planner = Planner(self._places(), self.settings)
        self._messages = Messages(ground)
        prompt = Prompt(self._patient, self._adapters, self.settings, clock, files or NoFiles())
        self._outboxes = {a: Outbox(ground, one, Exporting(self._patient, files)) for a, one in self._adapters.items()}
        self._turns = Turns(ground, self.agents, box := self._toolbox(ground, planner, prompt), prompt, self._outboxes)
        self._stranded = Stranded(ground, self._turns, self._outboxes.values())
        self._commands = self._typed()
        self.programs = self._served(ground, box)
        access = Access(self.settings, self._ids)
        self._inbox = Inbox(self.store.driver, ground, self._turns, self._door(access))
        self._inviting = Inviting(self.store.driver, self._adapters, clock)
        self._watched = Watched(self._patient, adapters, self._replica, self.settings.poll)
        self._handoffs = Handoffs(ground)
        self._titles = ThreadTitles(ground, lambda: self.accounts)
        file_store = files if isinstance(files, FileStore) else _folder_of(self.settings)
        self._schedules = Schedules(self._patient, planner, self.settings, access.still, clock, file_store)
        self._watchdog = Watchdog(self.metrics)
        self._sweep = Sweep(self._patient, self.agents, self.settings, clock, self._ids)
        self._lives = self._connected()
        self._cleaner, self._soundness = self._made_cleaner(file_store), Soundness(self.store.driver)
        self._ears = self._listeners()
        self._spawned: set[asyncio.Task[None]] = set()
        self._main: asyncio.Task[None] | None = None
        self._unlisten: Callable[[], None] | None = None

    def _connected(self) -> list[Life]:
        """The connections that adapters need, and lockers; windows come by themselves."""
        for adapter in self.adapters:
            if isinstance(adapter, Remembers):
                adapter.remember(OwnLocker(self._patient, adapter))
        return [
            Life(self._patient, adapter, self._replica, self._inbox.accept, self.settings.poll, self.commands, line)
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
        driver, metrics = self.store.driver, self.metrics
        return Cleaner(driver, self._adapters, self.settings, self._clock, self._let_go, metrics.swept, files)

    def _listeners(self) -> Mapping[str, Callable[[str], None]]:
        """Connect wake-ups to the parts that hear them, and gauges to the figures that they read."""
        self.metrics.watch(
            running=lambda: self._turns.running,
            slots=self.settings.slots,
            lease_left=lambda: self._replica.left,
            refused=lambda: self._patient.refused,
        )
        return {
            Topic.TURNS: lambda _: self._turns.wake.set(),
            Topic.DELIVERIES: self._send,
            Topic.CONNECTIONS: self._connect,
            Topic.SAID: lambda session: self.watches.tell(SessionId(session), Changed()),
            Topic.HANDOFF: self._handoff_moved,
            Topic.HIDDEN: lambda _: self._turns.forget(),
            Topic.FORGOTTEN: lambda _: self._cleaner.wake.set(),
            Topic.LETTERS: lambda _: self._inbox.wake.set(),
            Topic.LOOK: self._look,
            Topic.ASKED: lambda _: self.watches.tell(Topic.ASKED, SomethingAsked()),
            Topic.NOTED: self.metrics.noted,
            Topic.NAMED: lambda session: self._spawn(self._titles.tell(SessionId(session))),
            Topic.BEGUN: lambda person: self._spawn(self._sweep.bound(PersonId(person))),
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
        await self._inbox.close(self.settings.grace)
        await self._turns.drain(self.settings.grace)
        # What was just answered gets a moment to be sent.
        await asyncio.gather(*(outbox.flush(min(self.settings.grace, 2.0)) for outbox in self._outboxes.values()))
        main.cancel()
        await asyncio.wait([main])
        # A claim that was on its way may have brought something.
        await self._turns.drain(0.0)
        if self._unlisten is not None:
            self._unlisten()
        with contextlib.suppress(TimeoutError):
            # A database that is gone takes no farewell; the others find out when the lease ends.
            async with asyncio.timeout(self.settings.lease):
                await self._replica.leave()

    async def ended(self) -> None:
        """Wait until it ends by itself, which only a bug can make it do; raises what it ended by."""
        if self._main is not None:
            await asyncio.shield(self._main)

    async def accept(self, arrival: Arrived) -> Accepted:
        """Make an arrival durable; when this returns it may be acknowledged."""
        return await self._inbox.accept(arrival)

    async def invite(self, lane: Lane, person: Person) -> Invitation | None:
        """A way to take a lane's conversation along to another platform."""
        return await self._inviting.invite(lane, person)

    def webhooks(self) -> list[tuple[str, Callable[..., Awaitable[None]]]]:
        """The webhooks that platforms call, by path."""
        accept: Accept = self.accept
        return [
            (f"/in/{adapter.platform}/{adapter.account}", adapter.webhook(accept))
            for adapter in self._adapters.values()
            if isinstance(adapter, TakesWebhooks)
        ]

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
        return self._inbox.open and not self._patient.trouble

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

    def problems(self) -> list[str]:
        """The troubles that keep it from its work now."""
        broken = [f"{name} {health.words}" for name, health in self.accounts.items() if health.reach is Reach.BROKEN]
        found = [self._patient.trouble, self._soundness.trouble, *broken]
        if self._main is not None and self._main.done():
            found.append("The gateway has stopped. See its log for why.")
        if self._inbox.open and self._inbox.overloaded:
            found.append("More comes in than can be done: messages are refused until answers catch up.")
        if self._inbox.open and self._replica.left < 0 and not self._patient.trouble:
            found.append("The database hasn't taken a heartbeat in time. See whether its disk or server answers.")
        return [problem for problem in found if problem]

    async def _unite(self) -> None:
        """Make all who speak for the host one person, whoever they were before the settings said so."""
        hosts = self.settings.hosts
        host = await self.store.driver.write(grants.unite, hosts, [self._ids() for _ in hosts[1:]], self._clock())
        self._turns.knows_host(host or "")

    async def _live(self) -> None:
        """Do everything at once; under a new id again if this replica was taken for dead."""
        while True:
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._replica.beat(), name="beat")
                    group.create_task(self._watchdog.run(), name="watchdog")
                    group.create_task(self._soundness.run(), name="soundness")
                    group.create_task(self._turns.claim(), name="claim")
                    group.create_task(self._stranded.run(), name="stranded")
                    group.create_task(self._index(), name="index")
                    group.create_task(self._forget(), name="forget")
                    group.create_task(self._cleaner.run(), name="cleaner")
                    if self._cleaner.leftovers is not None:
                        group.create_task(self._cleaner.leftovers.run(), name="leftovers")
                    group.create_task(self._inbox.run(), name="letters")
                    group.create_task(Retaining(self._patient, self.settings, self._clock).run(), name="retention")
                    group.create_task(self._messages.sweep(), name="answers")
                    group.create_task(self._sweep.run(), name="sweep")
                    group.create_task(self._schedules.run(), name="schedules")
                    group.create_task(self._handoffs.run(), name="handoffs")
                    group.create_task(self._watched.run(), name="windows")
                    for outbox in self._outboxes.values():
                        group.create_task(outbox.run(), name="outbox")
                    for life in self._lives:
                        group.create_task(life.run(), name=life.name)
            except* Fenced:
                log.warning("this replica was taken for dead; it goes on under a new id")
                await self._turns.drain(0.0)
                await self._replica.join()

    async def _index(self) -> None:
        """Make what was said findable, behind the turns."""
        while True:
            batches = await self._patient.read(search.unindexed, _INDEX_BATCH)
            if batches:
                await self._patient.write(search.index, batches)
            else:
                await asyncio.sleep(_INDEX_PACE)

    async def _forget(self) -> None:
        """Forget what decides nothing any more: keys of arrivals, codes, tokens, questions, old refusals, strangers."""
        while True:
            while await self._patient.write(letters.forget, self._clock()):
                """Until none is left, a batch at a time: others go on between."""
            for platform, account in self._adapters:
                await self._patient.write(letters.forget_strangers, account_key(platform, account), self._clock())
            await self._patient.write(codes.forget, self._clock())
            await self._patient.write(questions.expire, self._clock())
            await self._patient.write(audit.forget, self._clock())
            await self._patient.write(browsers.forget, self._clock())
            await self._patient.write(tokens.forget, self._clock())
            after = await self._patient.write(strangers.forget, "", self.settings.hosts, self._clock())
            while after:
                after = await self._patient.write(strangers.forget, after, self.settings.hosts, self._clock())
            while unspoken := await self._patient.read(merges.unspoken, self._clock()):
                await self._patient.write(merges.forget, unspoken, self._clock())
            await asyncio.sleep(_FORGET_PACE)

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
        self._spawn(self._turns.look(SessionId(session)))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)


def _folder_of(settings: GatewaySettings) -> FileStore | None:
    return Folder(Path(settings.data)) if settings.data else None
