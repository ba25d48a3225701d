"""Streaming: a reply is shown while it is written, by edits of one message."""

import asyncio
import logging
from typing import NamedTuple

from msgspec.structs import replace

from segue.changes.exchange import deliveries
from segue.core.contracts.adapters import Adapter, EditsMessages, ShowsSteps, ShowsTyping
from segue.core.contracts.probes import Point
from segue.core.lanes import Address
from segue.core.messages import Delivery
from segue.core.settings import NO_ACCOUNT, ProgressShown, Streams
from segue.core.text.splitting import SHORT, split
from segue.errors import Fenced, SendError, SendLater
from segue.runtime.outbox import Outbox
from segue.runtime.parts import Ground
from segue.runtime.placeholders import lost_placeholder
from segue.runtime.turns.running import Running
from segue.runtime.windows.watchers import Growing

log = logging.getLogger(__name__)

_LOOK = 0.05
"""Seconds between two looks at a text that grows, for each so many characters of it."""
_SHORT = 20_000
_PACE = 1.0
"""Seconds between two edits."""
_TYPING = 4.0
"""Seconds between two signs that somebody writes."""
_CALL = 60.0
"""Seconds that one call may take; the final text is sent after it."""


class Stream:
    """The part of a turn that a person sees before it is done; trouble here never harms the turn."""

    def __init__(self, ground: Ground, live: Running, outbox: Outbox | None = None) -> None:
        run = live.run
        self._store = ground.store
        self._replica = ground.replica
        self._watches = ground.watches
        self._clock = ground.clock
        self._probe = ground.probe
        self._failures = ground.failures
        self._outbox = outbox
        self._run = run
        self._said = live.said
        self._text = ""
        self._doing: list[str] = []
        self._progress = ground.settings.accounts.get(live.account, NO_ACCOUNT).progress
        self._grown = False
        self._pause: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()
        self._opening = asyncio.Lock()
        """Held while the database opens the message."""
        self._call: asyncio.Task[str] | None = None
        """The call to the platform that is under way; it returns the message's id."""
        self._delivery: Delivery | None = None
        self._tasks: list[asyncio.Task[None]] = []
        adapter = ground.adapters.get(live.account)
        if adapter is None or live.address is None:
            return
        if isinstance(adapter, ShowsTyping):
            self._tasks.append(asyncio.create_task(self._show_typing(adapter, live.address)))
        # It may yet be kept for whoever waits, or what hangs on it may fail: nothing is shown before that is settled.
        unsettled = run.turns[0].awaited is not None or run.turns[0].kind is ground.sequel.kind
        streams = ground.settings.accounts.get(live.account, NO_ACCOUNT).streams
        if streams is Streams.LIVE and isinstance(adapter, EditsMessages) and not unsettled:
            self._tasks.append(asyncio.create_task(self._show_text(adapter, adapter, live.address)))

    def grew(self, doing: str = "") -> None:
        """There is more of it, or the agent does something before it goes on."""
        if self._progress is ProgressShown.FULL:
            self._doing += [doing] if doing else []
        else:
            self._doing = [doing] if doing and self._progress is ProgressShown.LINE else []
        self._grown = True
        if self._pause is None:
            self._look()

    def _look(self) -> None:
        """Tell how a text grows: at once, but a long one less often, so that what is told in a second stays bounded."""
        self._pause = None
        if self._grown:
            self._grown, text = False, self._said.text
            doing = "\n".join(f"({doing} …)" for doing in self._doing)
            self._text = f"{text}\n\n{doing}".strip()
            self._changed.set()
            answers = tuple(turn.message for turn in self._run.turns if turn.message)
            grown = Growing(self._run.name, self._text, tuple(self._said.parts), "\n".join(self._doing), answers)
            self._watches.tell(self._run.held.session, grown)
            pause = _LOOK * max(1.0, len(text) / _SHORT)
            self._pause = asyncio.get_running_loop().call_later(pause, self._look)

    async def end(self) -> None:
        """Stop, without waiting for the platform: the outbox sends the final text after a call that is under way."""
        if self._pause is not None:
            self._pause.cancel()
        async with self._opening:
            for task in self._tasks:
                task.cancel()
        for ended in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                log.error("a reply couldn't be shown while it was written", exc_info=ended)
        if self._call is not None and self._delivery is not None and self._outbox is not None:
            self._outbox.send_after(int(self._delivery.id), self._call)

    async def _show_typing(self, adapter: ShowsTyping, address: Address) -> None:
        while True:
            try:
                async with asyncio.timeout(_TYPING):
                    with self._failures.adapter_call(address.platform, address.account, "showing that somebody types"):
                        await adapter.typing(address)
            except (SendError, TimeoutError) as error:
                log.debug("typing can't be shown: %s", error)
            await asyncio.sleep(_TYPING)

    async def _show_text(self, adapter: Adapter, edits: EditsMessages, address: Address) -> None:
        shown = _Grown()
        while True:
            await self._changed.wait()
            self._changed.clear()
            grown = _Grown(await _first_message(self._text, adapter))
            if isinstance(adapter, ShowsSteps):
                said = await _first_message(self._said.text, adapter)
                grown = _Grown(grown.text, said, tuple(self._doing))
            if grown != shown and self._replica.left > self._replica.lease / 2:
                try:
                    if await self._open(address):
                        await self._show(adapter, edits, grown)
                        shown = grown
                except Fenced:
                    return
                except (SendError, TimeoutError) as error:
                    log.info("a reply can't be shown while it is written: %s", str(error) or "no answer came in time")
                    if not isinstance(error, SendLater) and self._delivery and not self._delivery.message:
                        # A placeholder may stand there whose id nobody knows: a second one would be another stray.
                        return
            await asyncio.sleep(_PACE)

    async def _open(self, address: Address) -> bool:
        """Open the message that the reply grows in; return whether there is one."""
        async with self._opening:
            if self._delivery is None:
                held, answers = self._run.held, tuple(turn.message for turn in self._run.turns if turn.message)
                self._delivery = await self._store.write(
                    deliveries.open_stream, held, self._run.name, address, answers, self._clock()
                )
                if self._delivery is not None:
                    self._probe(Point.STREAM_OPENED)
            return self._delivery is not None

    async def _show(self, adapter: Adapter, edits: EditsMessages, grown: "_Grown") -> None:
        """Show how far the reply has grown, by a call that goes on if the turn ends meanwhile."""
        call = self._call = asyncio.create_task(self._placed(adapter, edits, grown))
        call.add_done_callback(self._called)
        await asyncio.shield(call)

    def _called(self, call: asyncio.Task[str]) -> None:
        self._call = None
        if not call.cancelled() and (error := call.exception()):
            log.debug("a call that shows a growing reply failed: %s", error)

    async def _placed(self, adapter: Adapter, edits: EditsMessages, grown: "_Grown") -> str:
        assert self._delivery is not None  # noqa: S101 -- it was opened
        async with self._replica.calling(_CALL):
            if not self._delivery.message:
                # If the id of this one is lost in a crash, what remains on the platform is a placeholder.
                ahead, message = self._delivery.placeholder, None
                if self._run.streamed:
                    message = await lost_placeholder(self._store, adapter, self._delivery)
                if not message:
                    with self._failures.adapter_call(adapter.platform, adapter.account, "sending a placeholder"):
                        message = await adapter.send(ahead)
                self._probe(Point.STREAM_SENT)
                await self._store.write(deliveries.placed, self._delivery, self._run.held.me, message)
                self._probe(Point.STREAM_PLACED)
                self._delivery = replace(self._delivery, message=message)
            said = replace(self._delivery, text=grown.said)
            with self._failures.adapter_call(adapter.platform, adapter.account, "showing a reply that grows"):
                if not isinstance(adapter, ShowsSteps) or not await adapter.grow(said, grown.steps):
                    await edits.edit(replace(said, text=grown.text))
        return self._delivery.message


async def _first_message(text: str, adapter: Adapter) -> str:
    """The first message that a text makes; a long text is cut in a thread, so that nobody waits for it."""
    if len(text) <= SHORT:
        return next(split(text, adapter.fits), "")
    return await asyncio.to_thread(lambda: next(split(text, adapter.fits), ""))


class _Grown(NamedTuple):
    """As much of a reply as fits into its first message."""

    text: str = ""
    """With the steps in it."""
    said: str = ""
    steps: tuple[str, ...] = ()
