"""Forgetting, where a transaction can't reach: memory, platforms, files, free space; then the receipt.

Law: a forgetting is done when nothing of it is left that we reach, and its receipt lists the rest. Any replica may
clean up; what one couldn't do is tried again, also after a restart.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path

from segue.changes import run_days
from segue.changes.forgetting import cleaning, retention
from segue.changes.forgetting.cleaning import Forgetting, LeftMessage
from segue.changes.forgetting.erasure import Cause, Removed
from segue.changes.forgetting.extent import TimeRun
from segue.core.contracts.adapters import Adapter, DeletesMessages
from segue.core.contracts.database import Clock
from segue.core.contracts.files import FILES, RESULTS, FileStore
from segue.core.settings import GatewaySettings
from segue.core.values import Moment
from segue.errors import SendError, SendLater, SendNever, SendUnsure
from segue.runtime.files.leftovers import Leftovers
from segue.runtime.lifecycle.failures import Failures, ItemGuard
from segue.runtime.replica import Pause
from segue.runtime.retrying import Patient
from segue.runtime.schedules import result_path

log = logging.getLogger(__name__)

_BATCH = 10
_PAGE = 500
_HOUR = 3600.0
_CALL = 10.0
"""Seconds that a platform has to delete a message."""
_WAITS = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Seconds before each further try at messages that a platform can't delete now: a minute in all."""
_LONGEST_WAIT = 30.0
"""Seconds of patience that a platform may ask for at once."""
_GRACE = 60.0
"""Seconds after which a file that nothing names belongs to nobody: until then its message may be on its way in."""
_SKEW = 60.0
"""Seconds by which the clock of whoever took the request may be behind the clock that says how old files are."""
HISTORY = "history"
"""The file in which terminals keep what was typed, each entry under the time at which it was."""
_ENTRY = re.compile(rb"^# (?P<at>[^\n]*)\n(?:\+[^\n]*\n)*", re.MULTILINE)
Adapters = Mapping[tuple[str, str], Adapter]


class Cleaner:
    """Cleans up after each forgetting."""

    def __init__(
        self,
        store: Patient,
        adapters: Adapters,
        settings: GatewaySettings,
        clock: Clock,
        failures: Failures,
        forget: Callable[[], None] = lambda: None,
        swept: Callable[[int], None] = lambda _: None,
        files: FileStore | None = None,
    ) -> None:
        self._store = store
        self._failures = failures
        self._guard = ItemGuard("Cleaning up after a /forget", failures)
        self._adapters = adapters
        self._data = Path(settings.data) if settings.data else None
        self._files = files
        self.leftovers = Leftovers(self._store, files, swept) if files else None
        self._clock = clock
        self._forget = forget
        """Lets go of what this process keeps in memory."""
        self._known: int | None = None
        self._waits: tuple[float, ...] = ()
        self.wake = Pause(settings.poll)

    async def run(self) -> None:
        """Clean up until cancelled; what is in memory goes at the first look after a forgetting, whoever asked."""
        while True:
            await self.once()
            await self.wake.wait()

    async def once(self) -> int:
        """Clean up after what was forgotten by now; returns after how much."""
        newest = await self._store.read(cleaning.last)
        if newest != self._known:
            self._known = newest
            self._forget()
        done, self._waits = 0, _WAITS

        async def clean(forgetting: Forgetting) -> None:
            nonlocal done
            done += await self._clean(forgetting)

        found = await self._store.read(cleaning.to_clean, _BATCH + self._guard.postponed)
        await self._guard.for_each_item(found, clean, lambda forgetting: str(forgetting.id))
        return done

    async def _clean(self, forgetting: Forgetting) -> bool:
        if not await self._store.write(cleaning.clear_notices, forgetting):
            return False
        taken, found = forgetting.took, await self._store.read(cleaning.standing, forgetting.id)
        refused = await self._delete(found)
        await asyncio.to_thread(self._drop_typed, forgetting)
        await self._drop_results(taken.work, taken.schedules)
        if not await self._drop_files(taken.files, forgetting.at):
            return False
        if not await self._store.driver.scrub():
            log.info("what was forgotten is cleaned once nobody reads the database as it was before")
            return False
        # Nothing of it is left here by now: the platform may take a while.
        standing = await self._delete_again(refused)
        receipt = receipt_of(forgetting, taken, standing, self._store.driver.copies)
        return await self._store.write(cleaning.done, forgetting, receipt, self._clock())

    async def _delete(self, messages: Iterable[LeftMessage]) -> list[tuple[LeftMessage, SendError]]:
        """Delete messages on their platforms; returns those that stand, and why."""
        tried = [(message, await self._delete_one(message)) for message in messages]
        return [(message, error) for message, error in tried if error is not None]

    async def _delete_again(self, refused: list[tuple[LeftMessage, SendError]]) -> list[LeftMessage]:
        """Try messages again that a platform couldn't delete now; returns those that stand in the end.

        A platform that is away is waited for once in each look: other forgettings wait behind this one.
        """
        waits, self._waits = self._waits, ()
        standing = [message for message, error in refused if isinstance(error, SendNever)]
        later = [(message, error) for message, error in refused if not isinstance(error, SendNever)]
        for wait in waits:
            if not later:
                break
            asked = max((error.seconds or 0.0 for _, error in later if isinstance(error, SendLater)), default=0.0)
            await asyncio.sleep(max(wait, min(asked, _LONGEST_WAIT)))
            later = await self._delete(message for message, _ in later)
        if not later:
            self._waits = waits
        return [*standing, *(message for message, _ in later)]

    async def _delete_one(self, message: LeftMessage) -> SendError | None:
        """Delete a message on its platform, if that lets us; returns why it stands, None if it is gone."""
        adapter = self._adapters.get((message.address.platform, message.address.account))
        if adapter is None or not isinstance(adapter, DeletesMessages):
            return SendNever("its platform deletes no messages")
        try:
            async with asyncio.timeout(_CALL):
                with self._failures.adapter_call(adapter.platform, adapter.account, "deleting a message"):
                    await adapter.delete(message.address, message.message)
        except (SendError, TimeoutError) as error:
            log.warning("a forgotten message of %s stands: %s", message.address.platform, type(error).__name__)
            return error if isinstance(error, SendError) else SendUnsure("it doesn't answer")
        await self._store.write(cleaning.deleted, message)
        return None

    async def _drop_results(self, work: Iterable[TimeRun], schedules: Iterable[str]) -> None:
        """Delete the results of scheduled work."""
        if self._files is None:
            return
        now = await self._files.now()
        for run in work:
            await self._files.delete(result_path(run.schedule, run.due, run.zone), now)
        for schedule in schedules:
            for result in await self._files.list_kept(f"{RESULTS}/{schedule}", 0.0, now):
                await self._files.delete(result, now)

    def _drop_typed(self, forgetting: Forgetting) -> None:
        """Empty the file of what was typed in terminals: nothing in it says which of it was forgotten.

        What the host keeps no longer was typed more than a day ago.
        """
        if self._data is None or not (self._data / HISTORY).exists():
            return
        with (self._data / HISTORY).open("r+b") as file:
            typed = file.read() if forgetting.why is Cause.RETENTION else b""
            lately = forgetting.at - run_days.DAY
            kept = [entry[0] for entry in _ENTRY.finditer(typed) if _typed_at(entry["at"]) > lately]
            file.seek(0)
            file.write(b"\n".join([b"", *kept] if kept else []))
            file.truncate()

    async def _drop_files(self, files: Iterable[str], at: Moment) -> bool:
        """Delete the files that went with it, and those that nothing names; returns whether no more is to be done."""
        if self.leftovers is None or self._files is None:
            return True
        await self.leftovers.sweep(files, at)
        lately, until = await self._files.now() - _GRACE, at + _SKEW
        await self.leftovers.sweep(await self._files.list_kept(FILES, 0.0, until), min(until, lately))
        return until <= lately or not await self.leftovers.unnamed(await self._files.list_kept(FILES, 0.0, until))


class Retaining:
    """Forgets what the host keeps no longer; any number of replicas may look, each session goes once."""

    def __init__(self, store: Patient, settings: GatewaySettings, clock: Clock, failures: Failures) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._guard = ItemGuard("Retention of a session", failures)

    async def run(self) -> None:
        """Look once an hour until cancelled; where all is kept for ever there is nothing to look for."""
        while self._settings.shortest_kept:
            await self.once()
            await asyncio.sleep(_HOUR)

    async def once(self) -> int:
        """Look at every session that may be due; returns how many were forgotten."""
        forgotten, after, at = 0, "", self._clock()

        async def forget(session: retention.Unused) -> None:
            nonlocal forgotten
            forgotten += await self._store.write(retention.forget, session, at)

        ran = await self._store.write(run_days.count, at)
        while found := await self._store.read(retention.unused, after, _PAGE, self._settings, at):
            over = [session for session in found if session.is_over(ran, at)]
            await self._guard.for_each_item(over, forget, lambda session: session.id)
            after = found[-1].id
        if forgotten:
            log.info("[retention]: %d sessions were forgotten", forgotten)
        return forgotten


def _typed_at(written: bytes) -> Moment:
    """When something was typed, as a terminal wrote it, in local time; long ago if it can't be told."""
    try:
        return datetime.fromisoformat(written.decode()).timestamp()
    except ValueError:
        return 0.0


def receipt_of(forgetting: Forgetting, taken: Removed, standing: Iterable[LeftMessage], copies: Iterable[str]) -> str:
    """The receipt for a person: what is gone, what couldn't be reached, and where its words still stand."""
    del forgetting
    gone = [_count(taken.said, "message"), _count(taken.calls, "tool call"), _count(taken.summaries, "summary")]
    gone += [_count(taken.notes, "note"), _count(len(taken.files), "file")]
    gone += [_count(max(0, taken.sessions - 1), "child session")]
    left = [f"your own messages on {account}" for account in taken.asked_on]
    stand = sorted({f"{message.address.platform}.{message.address.account}" for message in standing})
    left += [f"my messages on {account}" for account in stand]
    left += [f"what the provider of {model} keeps" for model in taken.models]
    left += [*copies, "exports that were sent, and an agent's own session"]
    lines = [f"Forgotten: {', '.join(filter(None, gone)) or 'all of it'}.", f"Not in my reach: {'; '.join(left)}."]
    if taken.repeats:
        found = [f"{f'“{hit.title}”' if hit.title else 'an untitled session'} ({hit.n})" for hit in taken.repeats]
        lines.append(f"Some of its words stand elsewhere: {', '.join(found)}.")
    return "\n".join(lines)


def _count(count: int, noun: str) -> str:
    if not count:
        return ""
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"1 {noun}" if count == 1 else f"{count:,} {many}"
