"""The outbox: takes deliveries in order per address and sends them, each by its adapter's class.

Law: a call lasts at most as long as its replica is known to live: the lease bounds a dead holder, not a slow platform.
The outcome of a call is recorded under the attempt that made it. Where nobody can know it (a call that broke off), the
next attempt is told of the doubt, and the adapter's class says what to do about it. Where the platform tells later what
became of a message, only its word makes a receipt: until then the delivery keeps its place.
"""

import asyncio
import contextlib
import logging
import random
import time
from contextlib import nullcontext
from typing import NamedTuple, ParamSpec, assert_never

from msgspec.structs import replace

from segue.changes.exchange import deliveries
from segue.changes.exchange.asking import Asks
from segue.changes.exchange.deliveries import Attempt
from segue.core.contracts.adapters import (
    Adapter,
    EditsMessages,
    ReadsBack,
    ReportsStatus,
    SendsByAnyId,
    ShowsButtons,
    Whispers,
    WhispersInAnswer,
)
from segue.core.contracts.database import Clock
from segue.core.contracts.probes import Point
from segue.core.messages import Delivery, Outgoing, Sending, SendStatus
from segue.core.settings import Blind
from segue.errors import Fenced, InDoubt, MessageGone, SendError, SendLater, SendNever, SendUnsure
from segue.runtime.files.delivery import Exporting
from segue.runtime.parts import Ground
from segue.runtime.placeholders import lost_placeholder
from segue.runtime.replica import Pause
from segue.runtime.telemetry.meters import Meter

P = ParamSpec("P")
log = logging.getLogger(__name__)

_AT_ONCE = 64
_SLOW, _MOST_SLOW = 5.0, 256
"""Seconds after which a call leaves its place to others, and how many such calls may go on beside."""
_HANGS = 15.0
"""Seconds of waiting for a platform that health tells of."""
_CALL = 240.0
"""Seconds that an attempt may take, while this replica lives: a placeholder and its edit, on a slow platform."""
_SHORTEST_WAIT, _LONGEST_WAIT = 0.25, 300.0
_FAILURES, _LASTS = 3, 60.0
"""Calls in a row that failed, and the seconds for which they did, until that is trouble."""
SENT, DEAD, TAKEN = "sent", "dead", "taken"
SILENT = "The platform took it, and never said that it was sent."
MAYBE = "(You may have seen this already.)\n\n"


class _Call(NamedTuple):
    """A call under way."""

    delivery: int
    began: float
    again: bool
    """Whether one for the same delivery hung or broke off before: it leaves its place to others from the beginning."""


class Outlet:
    """The way out to a platform: whether calls get through, by what came of the last ones."""

    def __init__(self, ticks: Clock = time.monotonic) -> None:
        self._ticks = ticks
        self._since = 0.0
        self.failures = 0
        """Calls in a row that didn't get through."""
        self._why = ""

    def worked(self) -> None:
        """The platform took something."""
        self.failures = 0

    def failed(self, error: Exception) -> None:
        """A call didn't get through; one that asked for patience did."""
        if isinstance(error, SendNever) or (isinstance(error, SendLater) and error.seconds is not None):
            return
        self._since = self._since if self.failures else self._ticks()
        self.failures += 1
        self._why = str(error) if isinstance(error, SendError) else type(error).__name__

    @property
    def trouble(self) -> str:
        """Reason why nothing gets through, once that has lasted; it is over when a call works."""
        lasted = self._ticks() - self._since
        if self.failures < _FAILURES or lasted < _LASTS:
            return ""
        return f"nothing could be sent for {lasted / 60:.0f} min, and it is tried again: {self._why}"


class Outbox:
    """Sends the deliveries of one account."""

    def __init__(self, ground: Ground, adapter: Adapter, exporting: Exporting) -> None:
        self._store = ground.store
        self._replica = ground.replica
        self._settings = ground.settings
        self._clock = ground.clock
        self._metrics = ground.metrics
        self._tracing = ground.tracing
        self._probe = ground.probe
        self._sequel = ground.sequel
        self._adapter = adapter
        self._exporting = exporting
        self._failures = ground.failures
        self._sending = f"{adapter.platform}.{adapter.account}: sending a message"
        """The place under which failures that the adapter doesn't name are told."""
        self._asks = Asks(ground.adapters, ground.settings)
        self._ids = ground.ids
        self._calls: dict[asyncio.Task[None], _Call] = {}
        """Calls under way."""
        self._before: dict[int, asyncio.Task[str]] = {}
        """By delivery, the call that shows how its text grows and is still under way."""
        self._idle = asyncio.Event()
        self.wake = Pause(ground.settings.poll)
        self.outlet = Outlet()
        self.meter = Meter(ground.store, adapter, ground.settings, ground.clock)

    async def flush(self, seconds: float) -> None:
        """Wait until all that is due was sent, but no longer than this."""
        self._idle.clear()
        self.wake.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()

    async def run(self) -> None:
        """Send until cancelled; calls under way are let finish."""
        try:
            while True:
                if self.free and await self._take():
                    continue
                if not self._calls:
                    self._idle.set()
                await self.wake.wait()
        finally:
            for call in self._before.values():
                call.cancel()
            try:
                if self._calls:
                    await asyncio.wait(self._calls)
            finally:
                # There are some left only if this was cancelled once more: the database hangs, too.
                for sending in self._calls:
                    sending.cancel()

    @property
    def free(self) -> bool:
        """Whether there is room for a call more, from a replica that lives."""
        return self._room > 0 and self._replica.left > 0

    @property
    def _room(self) -> int:
        """How many more calls may begin: those that hang leave their places to others."""
        before = time.monotonic() - _SLOW
        slow = sum(call.again or call.began <= before for call in self._calls.values())
        return _AT_ONCE - len(self._calls) + min(slow, _MOST_SLOW)

    @property
    def trouble(self) -> str:
        """Calls that the platform doesn't answer, in words; empty if it answers all."""
        now = time.monotonic()
        hanging = [now - call.began for call in self._calls.values() if now - call.began >= _HANGS]
        count = f"{len(hanging)} calls wait" if len(hanging) > 1 else "a call waits"
        return f"{count} for its answer, for {max(hanging):.0f} s by now" if hanging else ""

    @property
    def sending(self) -> frozenset[int]:
        """Deliveries that are being sent now."""
        return frozenset(call.delivery for call in self._calls.values())

    def send(self, held: Outgoing) -> None:
        """Send what this replica holds."""
        attempt = self._attempt(held, self._before.pop(held.id, None))
        call = asyncio.create_task(attempt, name=f"delivery {held.id}")
        again = held.delivery.doubtful > 0 and not held.delivery.message
        self._calls[call] = _Call(held.id, time.monotonic(), again)
        call.add_done_callback(self._ended)

    def send_after(self, delivery: int, call: asyncio.Task[str]) -> None:
        """Send a delivery only after a call that shows how its text grows; its result is the message's id."""
        self._before[delivery] = call
        call.add_done_callback(lambda _: self._before.pop(delivery, None))

    async def _take(self) -> bool:
        """Take and send as many deliveries as there is room for; return whether more may be due."""
        platform, account, room = self._adapter.platform, self._adapter.account, self._room
        taken = await self._store.write(deliveries.outgoing, self._replica.id, platform, account, room)
        for held in taken:
            self.send(held)
        return len(taken) == room

    def _ended(self, call: asyncio.Task[None]) -> None:
        # Something may wait for this call's room, or somebody for the last of them.
        if self._room <= 0 or not self._idle.is_set():
            self.wake.set()
        del self._calls[call]
        if not call.cancelled() and (error := call.exception()):
            log.error("a delivery failed in a way that nobody foresaw", exc_info=error)

    async def _attempt(self, held: Outgoing, before: asyncio.Task[str] | None) -> None:
        started = time.monotonic()
        if before is not None:
            await asyncio.wait([before])
            if not before.cancelled() and before.exception() is None:
                held = replace(held, delivery=held.delivery.with_message(before.result()))
        platform, account = self._adapter.platform, self._adapter.account
        try:
            with self._tracing.delivery(platform, account, held.delivery.session) if self._tracing else nullcontext():
                outcome = await self._outcome(held)
        except Fenced as error:
            # It is somebody else's by now.
            log.warning("%s", error)
            outcome = "lost"
        if outcome not in {SENT, TAKEN}:
            self.wake.set()
        self._metrics.deliveries.labels(platform, account, outcome).inc()
        self._metrics.delivery_seconds.labels(platform, account).observe(time.monotonic() - started)

    async def _outcome(self, held: Outgoing) -> str:
        """Send it and record what became of it, which is also the name it is counted under."""
        self._probe(Point.SEND_TAKEN)
        if self._replica.spare <= 0:
            # Too close to the end of the lease: whoever holds it next sends it.
            await self._store.write(deliveries.unsent, held, Attempt.REFUSED, 0.0, "")
            return "put off"
        if (held.sequel or isinstance(self._adapter, ReportsStatus)) and (settled := await self._settled(held)):
            return settled
        started = time.monotonic()
        try:
            async with self._replica.calling(_CALL):
                message = await self._send(held)
        except TimeoutError as error:
            # Cut off by the lease, it is no sign of trouble on the platform.
            cut_off = time.monotonic() - started < _CALL
            if not cut_off:
                self.outlet.failed(SendUnsure("it doesn't answer"))
            return await self._later(held, Attempt.UNSURE, _SHORTEST_WAIT if cut_off else None, error)
        except Fenced:
            raise
        except Exception as error:  # noqa: BLE001 -- the adapter isn't ours: a bug of its own must not keep the delivery
            self.outlet.failed(error)
            return await self._failed(held, error)
        if self.outlet.failures:
            self.outlet.worked()
        self._failures.worked(self._sending)
        self._probe(Point.SEND_CALLED)
        if isinstance(self._adapter, ReportsStatus):
            within = self._adapter.reports_within
            await self._store.write(deliveries.taken, held, message, within)
            asyncio.get_running_loop().call_later(within, self.wake.set)
            return TAKEN
        await self._record(held, message)
        return SENT

    async def _settled(self, held: Outgoing) -> str:
        """What becomes of a message that isn't to be sent now; empty if it is."""
        if isinstance(self._adapter, ReportsStatus) and (told := await self._told(held, self._adapter.reports_within)):
            return told
        nothing_there = held.sequel and not held.delivery.doubtful and not held.delivery.message
        if nothing_there and await self._store.read(self._sequel.is_over, held.sequel):
            await self._store.write(deliveries.withdraw, held, self._clock())
            return "withdrawn"
        return ""

    async def _told(self, held: Outgoing, within: float) -> str:
        """What the platform's word about a message comes to; empty if it is to be sent."""
        match held.report:
            case SendStatus.SENT:
                await self._record(held, held.delivery.message)
                await self.meter.look()
                return SENT
            case SendStatus.NEVER:
                return await self._give_up(held, SendNever(held.error))
            case SendStatus.LATER:
                return await self._later(held, Attempt.REFUSED, None, SendLater(held.error))
            case SendStatus.TAKEN:
                return await self._give_up(held, SendNever(SILENT))
            case _:
                return await self._awaited(held, within)

    async def _awaited(self, held: Outgoing, within: float) -> str:
        """Wait before a resend: an earlier attempt may have been taken, and the word of it be under way."""
        left = within - self._waited(held)
        if held.delivery.doubtful and left > 0:
            return await self._later(held, Attempt.REFUSED, left, SendLater("It may have been sent already."))
        return ""

    async def _record(self, held: Outgoing, message: str) -> None:
        if held.sequel:
            await self._store.write(self._sequel.sent, held, message, self._clock())
        elif await self._store.write(deliveries.sent, held, message, self._clock()):
            # More waits for the same address: it is next.
            self.wake.set()
        self._probe(Point.SEND_RECORDED)

    async def _failed(self, held: Outgoing, error: Exception) -> str:
        """The next step after an attempt, by its outcome."""
        match error:
            case SendNever():
                return await self._give_up(held, error)
            case SendLater():
                return await self._later(held, Attempt.REFUSED, error.seconds, error)
            case SendUnsure():
                pass
            case _:
                self._failures.failed(self._sending, error)
        return await self._later(held, Attempt.UNSURE, None, error)

    async def _later(self, held: Outgoing, known: Attempt, seconds: float | None, error: Exception) -> str:
        waited = self._waited(held)
        if waited > self._settings.give_up_after:
            return await self._give_up(held, error)
        # Half as long again as it has waited so far, and twice as long as after the last attempt at most: those that
        # ended with their process don't count, nor does the time in which no gateway ran.
        steps = _SHORTEST_WAIT * 2 ** min(held.delivery.attempt, 20)
        backoff = min(_LONGEST_WAIT, max(_SHORTEST_WAIT, min(waited / 2, steps)))
        delay = seconds if seconds is not None else backoff
        delay *= random.uniform(1.0, 1.2)  # noqa: S311 -- spreads retries, keeps no secret
        # Others wait behind it: whatever patience a platform asks for, it is tried when it is to be given up.
        delay = min(delay, self._settings.give_up_after - waited + _SHORTEST_WAIT)
        await self._store.write(deliveries.unsent, held, known, delay, str(error) or type(error).__name__)
        asyncio.get_running_loop().call_later(delay, self.wake.set)
        return "later" if known is Attempt.REFUSED else "unsure"

    def _waited(self, held: Outgoing) -> float:
        """Seconds for which it has waited, which no step of the wall clock changes."""
        task = asyncio.current_task()
        call = self._calls.get(task) if task is not None else None
        return held.waited + (time.monotonic() - call.began if call is not None else 0.0)

    async def _give_up(self, held: Outgoing, error: Exception) -> str:
        log.error("delivery %s is a dead letter after %d attempts: %s", held.id, held.delivery.attempt, error)
        why, at = str(error) or type(error).__name__, self._clock()
        if isinstance(error, InDoubt) and not held.sequel:
            await self._store.write(self._asks.unsure, held, why, self._ids(), at)
        else:
            await self._store.write((self._sequel if held.sequel else deliveries).give_up, held, why, at)
        self._metrics.buried(self._adapter.platform, self._adapter.account, type(error).__name__)
        return DEAD

    async def _send(self, held: Outgoing) -> str:
        """One attempt: a change of the message that is there, or a new one."""
        adapter = self._adapter
        if held.delivery.only and not isinstance(adapter, Whispers | WhispersInAnswer):
            raise SendNever(f"{adapter.platform}.{adapter.account} can't send what only one person is to see.")
        delivery = held.delivery
        if delivery.choices and not isinstance(adapter, ShowsButtons):
            delivery = delivery.without_buttons
        if isinstance(adapter, SendsByAnyId):
            delivery = replace(delivery, chats=await self._store.read(deliveries.ids_of, delivery.address))
        if delivery.file is not None:
            delivery = await self._exporting.ready(delivery, delivery.file, adapter)
        try:
            if delivery.message and isinstance(adapter, EditsMessages):
                await adapter.edit(delivery)
                return delivery.message
            keyed = adapter.sending is Sending.KEYED and isinstance(adapter, EditsMessages)
            if keyed and delivery.may_have_placeholder:
                # Its key gives the placeholder that is there.
                return await self._place(adapter, delivery, held.me)
            return await self._new(adapter, delivery, held.me)
        except MessageGone:
            # Whoever saw it before it was whole deleted it: the answer comes as a new message.
            return await self._new(adapter, delivery.with_message(""), held.me)

    async def _new(self, adapter: Adapter, delivery: Delivery, me: str) -> str:
        """Send a message that isn't there yet, by the adapter's class."""
        match adapter.sending:
            case Sending.KEYED:
                return await adapter.send(delivery)
            case Sending.READ_BACK:
                if delivery.doubtful and isinstance(adapter, ReadsBack):
                    if found := await adapter.find(delivery):
                        return found
                    if isinstance(adapter, EditsMessages) and await adapter.find(delivery.placeholder):
                        return await self._place(adapter, delivery, me)
                return await adapter.send(delivery)
            case Sending.EDIT:
                return await self._place(adapter, delivery, me)
            case Sending.BLIND:
                if delivery.doubtful and self._settings.blind is Blind.AT_MOST_ONCE:
                    raise InDoubt("Nobody knows whether it was sent, and the host wants no duplicates.")
                warned = delivery.with_text(MAYBE + delivery.text)
                # A piece that is as long as a message may be has no room for it.
                return await adapter.send(warned if delivery.doubtful and adapter.fits(warned.text) else delivery)
            case _:
                assert_never(adapter.sending)

    async def _place(self, adapter: Adapter, delivery: Delivery, me: str) -> str:
        """Send a placeholder, keep its id, edit it to the final text; one that an earlier attempt left is taken."""
        if not isinstance(adapter, EditsMessages):
            raise SendNever(f"{adapter.platform}.{adapter.account} sends by editing, but its adapter can't edit.")
        message = await lost_placeholder(self._store, adapter, delivery) if delivery.doubtful else None
        message = message or await adapter.send(delivery.placeholder)
        await self._store.write(deliveries.placed, delivery, me, message)
        self._probe(Point.SEND_PLACED)
        await adapter.edit(delivery.with_message(message))
        return message
