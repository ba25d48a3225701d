"""The Feishu adapter: one object per account, which keeps a long connection open."""

import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from segue.adapters.feishu.api import Api
from segue.adapters.feishu.history import History
from segue.adapters.feishu.incoming import PRESS, Incoming
from segue.adapters.feishu.markup import fits, mention
from segue.adapters.feishu.messages import PICTURE
from segue.adapters.feishu.outgoing import Outgoing, Pace
from segue.adapters.feishu.sockets import Frame, acknowledge, opened, told
from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import Tries
from segue.adapters.shared.attachments import whole as at_once
from segue.adapters.shared.background import beside
from segue.adapters.shared.decoding import text_in
from segue.adapters.shared.downloads import Limits, fetching
from segue.adapters.shared.order import Work, in_order
from segue.adapters.shared.outcomes import connecting
from segue.adapters.shared.sockets import Socket
from segue.adapters.shared.threads import Openings
from segue.adapters.shared.webhooks import from_json
from segue.core.contracts.adapters import Accept, Connection, Files, Intake, Letter
from segue.core.contracts.database import Clock
from segue.core.lanes import Address
from segue.core.messages import File, Sending
from segue.errors import MessageGone

_SOON = 1.0
"""Seconds for which what was pressed waits for what came before it: Feishu wants it acknowledged in three."""
_KINDS = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}
"""Pictures by how they begin: Feishu doesn't say what a picture is."""


class Feishu:
    """Speaks to Feishu as one app, by a connection that it opens itself."""

    platform = "feishu"
    sending = Sending.KEYED
    connection = Connection.ONE
    buttons: Literal[True] = True
    largest_file = 30 * 1024 * 1024

    def __init__(
        self,
        account: str,
        api: Api,
        files: Files,
        *,
        pace: Pace = Pace(),  # noqa: B008 -- frozen
        clock: Clock = time.time,
    ) -> None:
        self.account = account
        self._own = Account(self.platform, account)
        self._api = api
        self._files = files
        self._clock = clock
        self._outgoing = Outgoing(api, files, pace, clock)
        self._incoming = Incoming(self._own, api, self._outgoing.is_own, clock)
        self._history = History(self._own, api, self.take, clock)
        self._openings = Openings()
        self._tries = Tries()
        self.troubles: Sequence[str] = ()
        """The scopes that the app lacks."""
        self.fits = fits
        self.mention = mention
        self.send = self._outgoing.send
        self.edit = self._outgoing.edit

    async def close(self) -> None:
        """Let go of the connections."""
        self._openings.close()
        await self._api.close()

    async def run(self, intake: Intake) -> None:
        """Keep a connection open until cancelled; what comes over it is acknowledged once it was accepted."""
        with connecting():
            await self._api.who()
            async with (
                beside(f"the scopes of {self._own}", self._look),
                beside(f"what was missed on {self._own}", lambda: self._history.go_back(intake)),
                opened(self._api) as socket,
            ):
                intake.connected()
                await in_order(self._works(socket, intake))

    async def _look(self) -> None:
        lacks = await self._api.lacks()
        self.troubles = [lacks] if lacks else []

    async def _works(self, socket: Socket, intake: Intake) -> AsyncIterator[Work]:
        """What there is to do about each thing that is told: nobody who pressed something waits for others' files."""

        async def take(payload: Any, frame: Frame) -> None:
            await self.take(payload, intake.accept)
            await acknowledge(socket, frame)

        async def after(_: int) -> None:
            await self._history.keep(intake)

        yield Work(partial(self._history.catch_up, intake))
        async for frame, whole in told(socket):
            payload = from_json(whole)
            yield Work(
                partial(take, payload, frame),
                after,
                _SOON if text_in(payload, "header", "event_type") == PRESS else None,
            )

    async def take(self, payload: Any, accept: Accept) -> None:
        """Take in one thing that was delivered."""
        heard = await self._own.or_letter(self._incoming.read(payload), payload)
        if isinstance(heard, Letter):
            await accept(heard)
        elif heard is not None:
            arrival, files = heard
            await accept(self._own.unfetched(arrival, lambda: self._fetch(arrival.message, files), payload))
            self._history.remember(arrival)

    async def _fetch(self, message: str, files: Mapping[str, File]) -> list[File | str]:
        return [await self._tries.file(one.name, key, self._fetched(message, key, one)) for key, one in files.items()]

    async def _fetched(self, message: str, key: str, file: File) -> File:
        kind = "image" if file is PICTURE else "file"
        url = f"{self._api.base}/open-apis/im/v1/messages/{message}/resources/{key}?type={kind}"
        async with fetching(url, Limits(trusted=self._api.base, opens=(await self._api.bearer(),))) as chunks:
            if file is not PICTURE:
                return await self._files.keep(file.name, file.media, chunks)
            picture = b"".join([chunk async for chunk in chunks])
        suffix = next((name for start, name in _KINDS.items() if picture.startswith(start)), "png")
        return await self._files.keep(f"picture.{suffix}", f"image/{suffix}", at_once(picture))

    async def delete(self, address: Address, message: str) -> None:
        """Recall a message of ours."""
        del address
        with contextlib.suppress(MessageGone):
            await self._api.call("DELETE", f"/im/v1/messages/{message}")

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        """Post the thread's root; what is sent to the thread answers it."""

        async def opened() -> Address:
            return self._own.address(parent.chat, await self._outgoing.open(parent.outside, title, key))

        return await self._openings.open(key, opened)
