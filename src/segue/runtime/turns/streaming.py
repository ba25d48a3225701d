"""Streaming: a reply is shown while it is written, by edits of one message."""

import asyncio
import logging

from segue.changes.exchange import deliveries
from segue.core.contracts.adapters import Adapter, EditsMessages, ReadsBack, ShowsTyping
from segue.core.contracts.probes import Point
from segue.core.lanes import Address
from segue.core.messages import Delivery
from segue.core.settings import Streams
from segue.core.text.splitting import split
from segue.core.turns import Run, Streamed
from segue.errors import Fenced, SendError
from segue.runtime.parts import Ground

log = logging.getLogger(__name__)

_PACE = 1.0
"""Seconds between two edits."""
_TYPING = 4.0
"""Seconds between two signs that somebody writes."""
_CALL = 10.0


class Stream:
    """What a person sees of a turn before it is done; trouble here never harms the turn."""

    def __init__(self, ground: Ground, adapter: Adapter | None, streams: Streams, run: Run) -> None:
        self._store = ground.store
        self._replica = ground.replica
        self._clock = ground.clock
        self._probe = ground.probe
        self._run = run
        self._text = ""
        self._changed = asyncio.Event()
        self._calling = asyncio.Lock()
        self._delivery: Delivery | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.streamed = run.streamed
        route = run.turns[-1].route
        if adapter is None or not route:
            return
        address = Address.parse(route)
        if isinstance(adapter, ShowsTyping):
            self._tasks.append(asyncio.create_task(self._show_typing(adapter, address)))
        if streams is Streams.LIVE and isinstance(adapter, EditsMessages):
            self._tasks.append(asyncio.create_task(self._show_text(adapter, adapter, address)))

    def show(self, text: str) -> None:
        """The reply so far."""
        self._text = text
        self._changed.set()

    async def end(self) -> None:
        """Stop; a call that is under way is over when this returns, so that the final text comes after it."""
        async with self._calling:
            for task in self._tasks:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _show_typing(self, adapter: ShowsTyping, address: Address) -> None:
        while True:
            try:
                async with asyncio.timeout(_CALL):
                    await adapter.typing(address)
            except (SendError, TimeoutError) as error:
                log.debug("typing can't be shown: %s", error)
            await asyncio.sleep(_TYPING)

    async def _show_text(self, adapter: Adapter, edits: EditsMessages, address: Address) -> None:
        shown = ""
        while True:
            await self._changed.wait()
            self._changed.clear()
            text = next(split(self._text, adapter.fits), "")
            if text != shown and self._replica.left > self._replica.lease / 2:
                try:
                    async with self._calling:
                        await self._call(adapter, edits, address, text)
                        shown = text
                except Fenced:
                    return
                except (SendError, TimeoutError) as error:
                    log.info("a reply can't be shown while it is written: %s", str(error) or "no answer came in time")
            await asyncio.sleep(_PACE)

    async def _call(self, adapter: Adapter, edits: EditsMessages, address: Address, text: str) -> None:
        held = self._run.held
        if self._delivery is None:
            answers = tuple(turn.message for turn in self._run.turns if turn.message)
            self._delivery = await self._store.write(
                deliveries.open_stream, held, self._run.name, address, answers, self._clock()
            )
            if self._delivery is None:
                return
            self.streamed = Streamed.YES
            self._probe(Point.STREAM_OPENED)
        async with asyncio.timeout(min(_CALL, self._replica.left)):
            if not self._delivery.message:
                message = await self._place(adapter, self._delivery)
                self._probe(Point.STREAM_SENT)
                await self._store.write(deliveries.placed, self._delivery, held.me, message)
                self._probe(Point.STREAM_PLACED)
                self._delivery = self._delivery.with_message(message)
            await edits.edit(self._delivery.with_text(text))

    async def _place(self, adapter: Adapter, delivery: Delivery) -> str:
        """A message to grow: if its id is lost in a crash, what remains on the platform is a placeholder."""
        earlier = self._run.streamed is Streamed.YES
        if earlier and isinstance(adapter, ReadsBack) and (found := await adapter.find(delivery.placeholder)):
            return found
        return await adapter.send(delivery.placeholder)
