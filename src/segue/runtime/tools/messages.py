"""Sending: an agent writes to another session, and may wait for the answer.

Law: an answer is the tool's result or a delivery, never both. Which of them is decided in the transaction that finishes
the answering turn, by the database's clock; what was kept for a turn that ended without taking it is delivered.
"""

import asyncio
import contextlib
import time
from typing import Annotated, Any

from msgspec import Meta

from segue.changes.exchange import children
from segue.changes.exchange.children import Taken, Unreceived, Waiting
from segue.changes.people.access import Access
from segue.core.lanes import Address
from segue.core.text.splitting import split
from segue.core.turns import Outcome, Reply
from segue.core.values import SessionId, Value
from segue.runtime.lifecycle.failures import ItemGuard
from segue.runtime.parts import Ground
from segue.runtime.tools.arguments import SESSION, named
from segue.runtime.tools.children import Label
from segue.runtime.tools.table import Calling, Offer
from segue.runtime.tools.waiting import until
from segue.runtime.windows.watchers import Changed, Sight

LONGEST_WAIT = 300
_BATCH = 50
_NOTES = {
    Outcome.ANSWERED: "",
    Outcome.FAILED: "It failed at this.",
    Outcome.STOPPED: "It was stopped before it was done.",
    Outcome.WITHDRAWN: "It was closed before it came to this.",
}


class SendArguments(Value, frozen=True):
    """Arguments of sessions_send."""

    message: Annotated[str, Meta(min_length=1, description="what to say to it.")]
    label: Label = ""
    session: Annotated[str, Meta(description=SESSION)] = ""
    wait: Annotated[
        float,
        Meta(ge=0, le=LONGEST_WAIT, description="seconds to wait for its answer, at most 300; 0 to go on at once."),
    ] = 0


class Messages:
    """Carries what one session's agent writes to another session."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._store = ground.store
        self._still = Access(ground.settings, ground.ids).still
        self._adapters = ground.adapters
        self._watches = ground.watches
        self._limits = ground.settings.routing.limits
        self._poll = ground.settings.poll
        self._clock = ground.clock
        self._guard = ItemGuard("Delivering an answer that nobody took", ground.failures)

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The tools about it."""
        does = (
            "Write to a child session, or to another session of the same person. Without wait its answer is shown to "
            "people; with wait it is the result of this call instead, if it comes in time."
        )
        return (Offer("sessions_send", does, SendArguments, self.send),)

    async def send(self, calling: Calling, asked: SendArguments) -> dict[str, Any]:
        """Write to a session."""
        named(asked.label, asked.session)
        asker, wait = calling.asker, asked.wait or None
        known = await self._store.read(children.known, calling.key)
        if known is None:
            # A label may go to another child once its first is closed: a call that was made stays with its session.
            session = await self._store.read(children.find, asker, asked.label, asked.session)
            await self._store.read(children.allowed, asker, self._still)
            known = await self._store.write(
                children.send, asker, calling.key, session, asked.message, wait, self._limits, self._clock()
            )
        told: dict[str, Any] = {"session": known.session, "label": asked.label}
        if asker.held is None and wait is not None:
            return told | await self.outcome(known.session, known.turn, wait)
        if wait is None:
            shown = "Its answer will be shown to people." if asker.held else "sessions_history shows its answer, too."
            return told | {"state": "sent", "note": shown}
        async with calling.waiting():
            answer = await self._answer(known.session, known.turn, wait)
        if answer is None:
            return told | {"state": "sent", "note": "It hasn't answered in time. Its answer is shown to people."}
        note = {"note": _NOTES[answer.outcome]} if _NOTES[answer.outcome] else {}
        return told | {"state": answer.outcome.value, "reply": answer.text} | note

    async def outcome(self, session: SessionId, turn: int, seconds: float) -> dict[str, Any]:
        """The answer of a turn that a program asked for, as it is told of it."""

        async def look() -> Taken | None:
            return await self._store.read(children.answered, session, turn)

        found = await until(self._ground, session, seconds, look)
        if found is None:
            note = "It hasn't answered in time. Make the same call with the same key to go on waiting."
            return {"state": "sent", "note": note}
        note = _NOTES[found.outcome]
        return {"state": found.outcome.value, "reply": found.text} | ({"note": note} if note else {})

    async def _answer(self, session: SessionId, turn: int, seconds: float) -> Taken | None:
        """The answer of a session; None once the time is over."""
        news = asyncio.Event()

        def see(sight: Sight) -> None:
            if isinstance(sight, Changed):
                news.set()

        until = time.monotonic() + seconds
        look_away = self._watches.watch(session, see)
        try:
            while True:
                news.clear()
                if await self._store.read(children.waited, session, turn) is None:
                    found = await self._store.write(children.receive, session, turn, self._clock())
                    if not isinstance(found, Waiting):
                        return found
                    if found is Waiting.OVER:
                        return None
                with contextlib.suppress(TimeoutError):
                    # The database's clock decides when the time is over; ours says when to look.
                    async with asyncio.timeout(min(self._poll, max(until - time.monotonic(), 0.01))):
                        await news.wait()
        finally:
            look_away()

    async def sweep(self) -> None:
        """Deliver the answers that nobody takes any more, until cancelled."""
        while True:
            found = await self._store.read(children.unreceived, _BATCH + self._guard.postponed)
            await self._guard.for_each_item(found, self._deliver, lambda left: f"{left.session} {left.turn}")
            await asyncio.sleep(5 * self._poll)

    async def _deliver(self, left: Unreceived) -> None:
        replies = await asyncio.to_thread(self._replies, left)
        await self._store.write(children.deliver, left.session, left.turn, replies, self._clock())

    def _replies(self, left: Unreceived) -> list[Reply]:
        if not left.route or not left.answer.text:
            return []
        address = Address.parse(left.route)
        adapter = self._adapters.get((address.platform, address.account))
        pieces = split(left.answer.text, adapter.fits) if adapter else [left.answer.text]
        return [Reply(address, piece, left.answer.entry) for piece in pieces]
