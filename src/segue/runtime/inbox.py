"""The inbox: arrivals are made durable, counted, and run at once if there is a free slot."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import assert_never

from segue.changes.accept import ALBUM, Duplicate, FilesFirst, Fresh, FrontDoor, Handled, OverLimit, Queued, give_up
from segue.changes.exchange import deliveries, letters
from segue.changes.exchange.letters import DeadLetter
from segue.core.contracts.adapters import Accepted, Arrived, Letter, StatusReport, Unfetched
from segue.core.contracts.database import Driver, Transaction
from segue.core.contracts.probes import Point
from segue.core.lanes import Address, Identity, account_key
from segue.core.messages import Arrival
from segue.core.people import MINUTE, Limit
from segue.core.turns import Room
from segue.core.values import Moment, PersonId, SessionId
from segue.errors import (
    Fenced,
    Invalid,
    OutcomeUnknown,
    Overloaded,
    SegueError,
    StoreConflict,
    StoreError,
    StoreUnreachable,
)
from segue.runtime.parts import Ground
from segue.runtime.replica import Pause
from segue.runtime.telemetry.logs import traced
from segue.runtime.turns.turns import Turns

log = logging.getLogger(__name__)

_MOST_REFUSED = 10_000
_AT_ONCE = 8
"""Messages that are taken in at once: fewer than a database has connections, so that answers get through."""
_LATE = 0.15
"""Of the wait for a slot from which on no more is taken in: from here on it is taken in slowly."""
WAIT = "There is a lot to do right now. Your message is kept, and its answer will take a while."
TOLD = "That message couldn't be taken in, and nothing was changed. Write it another way; the host's log says more."
"""Said where somebody wrote what became a dead letter."""


_BATCH = 10
_LOOK = 10.0
"""Seconds between looks at the dead letters."""
_MOMENT = 0.05
Accepting = Callable[[Arrival, Fresh, str | None, Room | None], Transaction[Queued | Handled | Duplicate | OverLimit]]


class Inbox:
    """Takes messages in, exactly once."""

    def __init__(self, driver: Driver, ground: Ground, turns: Turns, door: FrontDoor) -> None:
        self._driver = driver
        self._turns = turns
        self._door = door
        self._clock = ground.clock
        self._ids = ground.ids
        self._metrics = ground.metrics
        self._probe = ground.probe
        self._hosts = frozenset(ground.settings.hosts)
        self._refusing: dict[Identity, Moment] = {}
        self._store = ground.store
        self.open = False
        """Whether messages are taken in."""
        self.wake = Pause(_LOOK)
        self.dead = 0
        """Messages that couldn't be taken in or sent, when they were last counted."""
        self._told: dict[Identity, Moment] = {}
        self._overload = ground.settings.overload
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._taking: set[asyncio.Task[Accepted]] = set()
        """Messages that are being taken in; they are whether or not their bringer waits."""
        self._refused = float("-inf")
        """When a message was last refused because there was too much to do."""

    async def close(self, grace: float) -> None:
        """Take nothing in any more, and wait a while for messages that are being taken in."""
        self.open = False
        if self._taking:
            await asyncio.wait(self._taking, timeout=grace)

    @property
    def overloaded(self) -> bool:
        """Whether messages are refused because there is too much to do, or were a moment ago."""
        ago = time.monotonic() - self._refused
        return ago < self._overload or self._turns.lag > self._overload

    async def accept(self, arrived: Arrived) -> Accepted:
        """Make an arrival durable; when this returns it may be acknowledged."""
        if not self.open:
            raise StoreUnreachable("This gateway is stopping. Send it again in a moment.")
        trace = self._ids()
        where: Address | Letter | StatusReport
        try:
            with traced(trace):
                if isinstance(arrived, Unfetched):
                    where, outcome = arrived.arrival.place.address, await self._fetch(arrived, trace)
                elif isinstance(arrived, Letter):
                    where, outcome = arrived, await self._bury(arrived)
                elif isinstance(arrived, StatusReport):
                    where, outcome = arrived, await self._heed(arrived)
                else:
                    whole = arrived.settled if arrived.unfetched else arrived
                    where, outcome = arrived.place.address, await self._take(whole, trace)
        except StoreError as error:
            self._metrics.store_failed(error)
            raise
        self._probe(Point.ACCEPT_COMMITTED)
        self._metrics.arrivals.labels(where.platform, where.account, outcome).inc()
        return outcome

    async def _fetch(self, unfetched: Unfetched, trace: str) -> Accepted:
        """Take in a message with files, which are fetched once the same gate has let it pass."""
        try:
            outcome = await self._take(unfetched.arrival, trace)
        except FilesFirst:
            whole = await unfetched.fetch()
            return await (self._bury(whole) if isinstance(whole, Letter) else self._take(whole.settled, trace))
        if outcome is not Accepted.DUPLICATE:
            # They stay on their platform: their message isn't let in, or isn't for the agent.
            address = unfetched.arrival.place.address
            self._metrics.left(address.platform, address.account, len(unfetched.arrival.unfetched))
        return outcome

    async def _take(self, arrived: Arrival, trace: str) -> Accepted:
        arrival = arrived.heard
        try:
            return await self._write(arrival, trace)
        except StoreConflict as error:
            # The schema will say no again.
            return await self._give_up(arrival, error, trace)
        except (StoreError, Fenced, FilesFirst):
            raise
        except Exception as error:  # noqa: BLE001 -- whatever it is, the same message would come again for ever
            return await self._give_up(arrival, error, trace)

    async def run(self) -> None:
        """Take in again the dead letters that somebody wants to be, until cancelled."""
        while True:
            for letter in await self._store.read(letters.wanted, _BATCH):
                await self._take_again(letter)
            self.dead = await self._store.read(letters.count)
            await self.wake.wait()

    async def _take_again(self, letter: DeadLetter) -> None:
        arrival, trace = letters.arrival_in(letter), self._ids()
        if arrival is None:
            await self._store.write(letters.keep, letter, letter.why)
            return
        try:
            await self._write(arrival.settled.heard, trace, partial(self._door.accept_again, letter))
        except (StoreError, Fenced) as error:
            log.warning("a dead letter waits to be taken in again: %s", error)
        except Exception as error:  # it stays a dead letter, and says why
            log.exception("a dead letter can't be taken in again")
            await self._store.write(letters.keep, letter, type(error).__name__)

    async def _write(self, arrival: Arrival, trace: str, accept: Accepting | None = None) -> Accepted:
        if not arrival.deletes and self._refusing.get(arrival.speaker.identity, 0.0) > self._clock():
            return self._refuse(arrival, Limit.MESSAGES)
        # Whoever brings a message may hang up; the session that its commit claims has to run all the same.
        taking = asyncio.create_task(self._enter(arrival, trace, accept or self._door.accept))
        self._taking.add(taking)
        taking.add_done_callback(self._taking.discard)
        return await asyncio.shield(taking)

    async def _enter(self, arrival: Arrival, trace: str, accept: Accepting) -> Accepted:
        merges = tuple(self._ids() for _ in range(1 + len(arrival.speaker.aliases)))
        fresh = Fresh(PersonId(self._ids()), SessionId(self._ids()), self._ids(), merges, trace, self._clock())
        host = arrival.speaker.identity in self._hosts
        async with nullcontext() if host else self._entering():
            with self._store.writing():
                return await self._queue(accept, arrival, fresh, host=host)

    async def _queue(self, accept: Accepting, arrival: Arrival, fresh: Fresh, *, host: bool) -> Accepted:
        (me, room), run = self._turns.reserve(), None
        try:
            taken = await self._surely(accept, arrival, fresh, me, None if host else room)
            run = taken.run if isinstance(taken, Queued) else None
            if host and isinstance(taken, Queued):
                self._turns.knows_host(taken.met.person.id)
        finally:
            if me is not None and run is None:
                self._turns.give_back()
        match taken:
            case None:
                return Accepted.NEW
            case Duplicate():
                return Accepted.DUPLICATE
            case OverLimit():
                self._refuse_until(arrival, taken.until)
                return self._refuse(arrival, taken.limit)
            case Handled() | Queued():
                if arrival.album:
                    asyncio.get_running_loop().call_later(ALBUM + _MOMENT, self._turns.wake.set)
                if run is not None:
                    self._turns.start(run)
                elif isinstance(taken, Queued) and (me is None or (not host and room.only)):
                    self._turns.turned_away()
                    await self._tell_wait(arrival, fresh)
                return Accepted.NEW
            case _:
                assert_never(taken)

    async def _surely(
        self, accept: Accepting, arrival: Arrival, fresh: Fresh, me: str | None, room: Room | None
    ) -> Queued | Handled | Duplicate | OverLimit | None:
        """Run a transaction that takes an arrival in; None if a commit that nobody heard of had done so."""
        try:
            return await self._driver.write(accept, arrival, fresh, me, room)
        except OutcomeUnknown as error:
            self._metrics.store_failed(error)
            taken = await self._driver.write(accept, arrival, fresh, me, room)
            if not isinstance(taken, Duplicate):
                return taken
            # A session that the first commit claimed is held here and doesn't run.
            self._store.unheard()
            return None

    @asynccontextmanager
    async def _entering(self) -> AsyncIterator[None]:
        """Let few messages in at once, fewer while sessions wait for a slot: what was accepted comes first."""
        lag = self._turns.lag
        if lag > self._overload:
            raise self._too_much()
        if lag > self._overload * _LATE:
            await asyncio.sleep(min(1.0, lag / self._overload))
        try:
            async with asyncio.timeout(self._overload / 2):
                await self._places.acquire()
        except TimeoutError as error:
            raise self._too_much() from error
        try:
            yield
        finally:
            self._places.release()

    def _too_much(self) -> Overloaded:
        self._refused = time.monotonic()
        return Overloaded("There is more to do than can be done. Send it again in a while.")

    async def _tell_wait(self, arrival: Arrival, fresh: Fresh) -> None:
        """Tell whoever waits for a slot that they do, once a minute."""
        who, now = arrival.speaker.identity, self._clock()
        if self._turns.lag < self._overload * _LATE or self._told.get(who, 0.0) > now:
            return
        if len(self._told) >= _MOST_REFUSED:
            self._told.clear()
        self._told[who] = now + MINUTE
        address, key = arrival.place.address, f"wait/{fresh.trace}"
        await self._driver.write(deliveries.notify, address, WAIT, key, (arrival.message,), now)

    def _refuse(self, arrival: Arrival, limit: Limit) -> Accepted:
        address = arrival.place.address
        self._metrics.refused(address.platform, address.account, limit.name.lower())
        return Accepted.LIMITED

    def _refuse_until(self, arrival: Arrival, until: Moment) -> None:
        """Refuse all more of somebody's until their minute is over, without a look at the database."""
        now = self._clock()
        if len(self._refusing) >= _MOST_REFUSED:
            self._refusing = {who: when for who, when in self._refusing.items() if when > now}
        if now < until <= now + MINUTE and len(self._refusing) < _MOST_REFUSED:
            self._refusing[arrival.speaker.identity] = until

    async def _give_up(self, arrival: Arrival, error: Exception, trace: str) -> Accepted:
        """Make a dead letter of an arrival that can't be taken in, in a transaction of its own, and tell its person."""
        address, kind = arrival.place.address, type(error).__name__
        why = _kept(f"{kind}: {error}" if isinstance(error, SegueError) else kind)
        log.error("a message from %s.%s can't be taken in: %s", address.platform, address.account, why, exc_info=error)
        try:
            key, at = f"notice/{trace}", self._clock()
            new = await self._driver.write(give_up, arrival, why, TOLD, key, at, self._hosts)
        except (Invalid, UnicodeError, StoreConflict):
            # Its own ids are what no database keeps: nobody can be told by them.
            return await self._bury(Letter(address.platform, address.account, ascii(arrival), why, kind))
        if not new:
            return Accepted.DUPLICATE
        self._metrics.buried(address.platform, address.account, kind)
        return Accepted.DEAD

    async def _heed(self, report: StatusReport) -> Accepted:
        """Take the platform's word about a message that it took; word that no database keeps is a dead letter."""
        try:
            news = await self._driver.write(deliveries.report, report, self._clock())
        except (Invalid, UnicodeError, StoreConflict) as error:
            kind = type(error).__name__
            return await self._bury(Letter(report.platform, report.account, ascii(report), str(error), kind))
        return Accepted.NEW if news else Accepted.DUPLICATE

    async def _bury(self, letter: Letter) -> Accepted:
        account, why = account_key(letter.platform, letter.account), _kept(letter.why)
        log.error("something from %s.%s couldn't be understood: %s", letter.platform, letter.account, why)
        await self._driver.write(letters.bury, account, _kept(letter.raw), why, self._clock())
        self._metrics.buried(letter.platform, letter.account, letter.kind)
        return Accepted.DEAD


def _kept(text: str) -> str:
    """A text as every database, and every log, can keep it."""
    return text.replace("\0", "\\0").encode(errors="backslashreplace").decode()
