"""The Signal adapter: one object per account, which listens to a signal-cli daemon and calls it."""

import asyncio
import base64
import binascii
import contextlib
import logging
import re
import time
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, Literal
from urllib.parse import quote

from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import Attachments, content_of
from segue.adapters.shared.downloads import NotFetched
from segue.adapters.shared.outcomes import connecting
from segue.adapters.shared.rates import Limiter, Rate
from segue.adapters.signal.daemon import Daemon
from segue.adapters.signal.envelopes import Carried
from segue.adapters.signal.incoming import Heard, Hears, Reader
from segue.adapters.signal.markup import fits, render
from segue.core.contracts.adapters import Accept, Arrived, Connection, Files, Intake, Letter
from segue.core.contracts.database import Clock
from segue.core.lanes import Address
from segue.core.messages import Delivery, File, Sending
from segue.errors import Disconnected, SendNever, StoreError

log = logging.getLogger(__name__)

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PERSON = re.compile(rf"\+[0-9]+|(PNI:)?{_UUID.pattern}|u:.+")
"""A number, a UUID or a user name; all else is the id of a group."""
_MEDIA = re.compile(r"[\w.+-]+/[\w.+-]+")
_TYPING = Rate(1, 10.0)
"""The sign that somebody writes lasts fifteen seconds."""
_AGAIN, _SELDOM = 0.1, 5.0
"""Seconds until something that couldn't be kept is tried again: at first, and at last."""
_LEFT, _LAST = 0.1, 1.5
"""Seconds without a word after which nothing is left in the stream that is to be kept before the end, and in all."""


class Signal:
    """Speaks on Signal as one account, by a daemon that may have several."""

    platform = "signal"
    sending = Sending.BLIND
    connection = Connection.ONE
    any_id: Literal[True] = True
    largest_file = 50 * 1000 * 1000
    """Bytes of a file; Signal takes twice as much, which would have to be held in memory three times."""

    def __init__(
        self,
        account: str,
        daemon: Daemon,
        number: str,
        files: Files,
        hears: Hears = Hears.EVERYBODY,
        *,
        clock: Clock = time.time,
        ticks: Clock = time.monotonic,
    ) -> None:
        self.account = account
        self._own = Account(self.platform, account)
        self._daemon = daemon
        self._files = files
        self._clock = clock
        self._reader = Reader(self._own, number, hears)
        self._limiter = Limiter(ticks)
        self._attachments = Attachments(files)
        self._taking, self._taken = False, 0
        """Whether something is being taken in, and how often something was."""
        self.fits = fits

    async def close(self) -> None:
        """Let go of the connections."""
        await self._daemon.close()

    async def run(self, intake: Intake) -> None:
        """Listen until cancelled; the daemon fetches from Signal only while somebody does."""
        with connecting():
            await self._daemon.version()
            async with self._daemon.events() as events:
                intake.connected()
                await self._listen(events, intake.accept)
        raise Disconnected("The signal-cli daemon ended its stream.")

    async def _listen(self, events: AsyncIterator[list[Any]], accept: Accept) -> None:
        """Take in what comes. What the daemon told it never tells again, so the end waits until that is kept."""
        listening = asyncio.create_task(self._take_all(events, accept))
        try:
            await asyncio.shield(listening)
        except asyncio.CancelledError:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST):
                    await self._silence(listening)
            raise
        finally:
            listening.cancel()
            await asyncio.wait([listening])

    async def _silence(self, listening: asyncio.Task[None]) -> None:
        """Wait until nothing more comes."""
        before = -1
        while not listening.done() and (self._taking or before != self._taken):
            before = self._taken
            await asyncio.sleep(_LEFT)

    async def _take_all(self, events: AsyncIterator[list[Any]], accept: Accept) -> None:
        async for told in events:
            self._taking, self._taken = True, self._taken + 1
            for raw in told:
                await self.take(raw, accept)
            self._taking = False

    async def take(self, raw: Any, accept: Accept) -> None:
        """Take one event in."""
        heard = await self._own.or_letter(self._read(raw), raw)
        if isinstance(heard, Letter):
            await self._keep(heard, accept)
        elif heard is not None:
            await self._keep(self._own.unfetched(heard.arrival, lambda: self._fetch(heard), raw), accept)

    async def _keep(self, arrived: Arrived, accept: Accept) -> None:
        """Have something kept, however often that must be tried: meanwhile nothing more is read from the daemon."""
        wait = _AGAIN
        while True:
            try:
                await accept(arrived)
            except (StoreError, Disconnected) as error:
                log.warning("something from %s can't be kept yet, and is tried again: %s", self._own, error)
                await asyncio.sleep(wait)
                wait = min(2 * wait, _SELDOM)
            else:
                return

    async def _read(self, raw: Any) -> Heard | None:
        return self._reader.read(raw, self._clock())

    async def _fetch(self, heard: Heard) -> list[File | str]:
        chat, message = heard.arrival.place.address.chat, heard.arrival.message
        return [
            await self._attachments.file(file.unfetched, f"{message}/{file.id}", partial(self._content, file, chat))
            for file in heard.files
        ]

    async def _content(self, file: Carried, chat: str) -> bytes:
        to: dict[str, Any] = {"recipient" if _PERSON.fullmatch(chat) else "groupId": chat}
        try:
            found = await self._daemon.call("getAttachment", id=file.id or "", **to)
            return base64.b64decode(found["data"], validate=True)
        except SendNever as error:
            raise NotFetched("The signal-cli daemon hasn't got it.") from error
        except (binascii.Error, KeyError, TypeError, ValueError) as error:
            raise NotFetched("The signal-cli daemon gives something else.") from error

    async def send(self, delivery: Delivery) -> str:
        """Send one message; its id is the time at which the daemon sent it."""
        text, styles = render(delivery.text)
        fields: dict[str, Any] = {"message": text, "textStyle": styles or None, **self._answered(delivery)}
        if delivery.file is not None:
            content = await content_of(self._files, delivery.file)
            fields["attachments"] = [await asyncio.to_thread(_inline, delivery.file, content)]
        sent = await self._daemon.call("send", **_to(delivery.address, delivery.chats), **fields)
        return str(int(sent["timestamp"]))

    def _answered(self, delivery: Delivery) -> dict[str, Any]:
        """In a group, what is answered is quoted: several people may have asked."""
        at, _, author = delivery.answered.partition(".")
        if _PERSON.fullmatch(delivery.address.chat) or not at.isdecimal() or not author:
            return {}
        said = self._reader.beginnings.get(delivery.answered)
        return {"quoteTimestamp": int(at), "quoteAuthor": author, "quoteMessage": said or None}

    async def delete(self, address: Address, message: str) -> None:
        """Delete a message of ours for everybody; apps heed that for a day or two."""
        if not message.isdecimal():
            raise SendNever(f"{message!r} is no message of this account's.")
        await self._daemon.call("remoteDelete", targetTimestamp=int(message), **_to(address))

    async def typing(self, address: Address) -> None:
        """Show that somebody writes, for fifteen seconds."""
        if not self._limiter.take({address.chat: _TYPING}):
            await self._daemon.call("sendTyping", **_to(address))


def _to(address: Address, chats: Sequence[str] = ()) -> dict[str, Any]:
    """Whom a call is for: a person by their UUID where it is known, since a number may become somebody else's."""
    if not _PERSON.fullmatch(address.chat):
        return {"groupId": address.chat}
    return {"recipient": [next(filter(_UUID.fullmatch, (address.chat, *reversed(chats))), address.chat)]}


def _inline(file: File, content: bytes) -> str:
    """A file in the call itself: the daemon may run where it can't read ours."""
    media = file.media if _MEDIA.fullmatch(file.media) else "application/octet-stream"
    name = quote(file.name, safe="", errors="replace") or "file"
    return f"data:{media};filename={name};base64,{base64.b64encode(content).decode()}"
