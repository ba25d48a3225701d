"""The Feishu adapter: one object per account, which keeps a long connection open or is called with events."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from segue.adapters.feishu.api import Api
from segue.adapters.feishu.content import Attachment
from segue.adapters.feishu.directory import Directory
from segue.adapters.feishu.frames import Frame
from segue.adapters.feishu.history import History
from segue.adapters.feishu.incoming import Incoming, is_press
from segue.adapters.feishu.markup import fits, mention
from segue.adapters.feishu.outgoing import Outgoing, Pace
from segue.adapters.feishu.proof import PROOF, check, opened, same, unproven
from segue.adapters.feishu.scopes import missing
from segue.adapters.feishu.sockets import Line
from segue.adapters.feishu.sockets import opened as connected
from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import Tries
from segue.adapters.shared.background import beside
from segue.adapters.shared.downloads import Limits, fetching
from segue.adapters.shared.order import Work, in_order
from segue.adapters.shared.outcomes import connecting
from segue.adapters.shared.threads import Openings
from segue.adapters.shared.webhooks import door, from_json, posted
from segue.core.contracts.adapters import Accept, Connection, Files, Intake, Letter
from segue.core.contracts.database import Clock
from segue.core.lanes import Address
from segue.core.messages import File, Sending
from segue.core.values import Secret
from segue.errors import MessageGone

_LONGEST_TITLE = 200
_SOON = 1.0
"""Seconds for which what was pressed waits for what came before it: Feishu wants it acknowledged in three."""
_LOOK = 60.0
"""Seconds between two looks at whether Feishu still knows the app."""
_RETRIES = 600.0
"""Seconds in which Feishu surely calls again by itself, if it can: after 15 of them, and after five minutes."""
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
        directory = Directory(api)
        self._outgoing = Outgoing(api, files, directory, pace, clock)
        self._incoming = Incoming(self._own, directory, self._outgoing.is_own)
        self._history = History(self._own, api, directory, self.take, clock)
        self._openings = Openings()
        self._tries = Tries()
        self._me = ""
        self._lacks = ""
        self.fits = fits
        self.mention = mention
        self.send = self._outgoing.send
        self.edit = self._outgoing.edit

    async def close(self) -> None:
        """Let go of the connections."""
        self._openings.close()
        await self._api.close()

    async def who(self) -> str:
        """The id of the app's own bot."""
        if not self._me:
            bot = (await self._api.call("GET", "/bot/v3/info")).get("bot") or {}
            self._me = str(bot.get("open_id") or "")
        return self._me

    @property
    def troubles(self) -> Sequence[str]:
        """The scopes that the app lacks."""
        return [self._lacks] if self._lacks else []

    async def _look(self) -> None:
        self._lacks = await missing(self._api)

    async def run(self, intake: Intake) -> None:
        """Keep a connection open until cancelled; what comes over it is acknowledged once it was accepted."""
        with connecting():
            await self.who()
            async with (
                beside(f"the scopes of {self._own}", self._look),
                beside(f"what was missed on {self._own}", lambda: self._history.go_back(intake)),
                connected(self._api) as line,
            ):
                intake.connected()
                await in_order(self._works(line, intake))

    async def _works(self, line: Line, intake: Intake) -> AsyncIterator[Work]:
        """What there is to do about each thing that is told: nobody who pressed something waits for others' files."""

        async def take(payload: Any, frame: Frame) -> None:
            await self.take(payload, intake.accept)
            await line.acknowledge(frame)

        async def after(_: int) -> None:
            await self._history.keep(intake)

        yield Work(partial(self._history.catch_up, intake))
        async for frame, told in line.told():
            payload = from_json(told)
            yield Work(partial(take, payload, frame), after, _SOON if is_press(payload) else None)

    async def take(self, payload: Any, accept: Accept) -> None:
        """Take in one thing that was delivered."""
        reading = self._incoming.read(payload, await self.who(), self._api.app, self._clock())
        heard = await self._own.or_letter(reading, payload)
        if isinstance(heard, Letter):
            await accept(heard)
        elif heard is not None:
            message, files = heard.arrival.message, heard.attachments
            await accept(self._own.unfetched(heard.arrival, lambda: self._fetch(message, files), payload))
            self._history.remember(heard.arrival)

    async def _fetch(self, message: str, files: Sequence[Attachment]) -> list[File | str]:
        return [await self._tries.file(one.name, one.key, self._fetched(message, one)) for one in files]

    async def _fetched(self, message: str, file: Attachment) -> File:
        kind = "image" if file.kind == "image" else "file"
        url = f"{self._api.base}/open-apis/im/v1/messages/{message}/resources/{file.key}?type={kind}"
        limits = Limits(trusted=self._api.base, opens=(await self._api.bearer(),))
        async with fetching(url, limits) as chunks:
            if kind == "file":
                return await self._files.keep(file.name, file.named.media, chunks)
            first = await anext(chunks, b"")
            suffix = next((name for start, name in _KINDS.items() if first.startswith(start)), "png")
            return await self._files.keep(f"picture.{suffix}", f"image/{suffix}", _after(first, chunks))

    async def delete(self, address: Address, message: str) -> None:
        """Recall a message of ours."""
        del address
        with contextlib.suppress(MessageGone):
            await self._api.call("DELETE", f"/im/v1/messages/{message}")

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        """Post the thread's root; what is sent to the thread answers it."""
        return await self._openings.open(key, lambda: self._open(parent.outside, title.strip(), key))

    async def _open(self, parent: Address, title: str, key: str) -> Address:
        root = await self._outgoing.open(parent, title[:_LONGEST_TITLE] or "Session", f"thread/{key}")
        return self._own.address(parent.chat, root)


class FeishuByEvents(Feishu):
    """Speaks to Feishu as one app, and is called with what people say to it."""

    def __init__(self, account: str, api: Api, token: Secret, key: Secret, files: Files, **more: Any) -> None:
        super().__init__(account, api, files, **more)
        self._token = token
        self._key = key

    def webhook(self, accept: Accept) -> ASGIApp:
        """An ASGI application that answers 2xx only after `accept` returned."""

        async def answer(request: Request) -> Response:
            body = await posted(request)
            signed = PROOF in request.headers
            if signed:
                check(request, self._key, body, self._clock())
            sealed = from_json(body)
            payload = from_json(opened(self._key, sealed.get("encrypt") if isinstance(sealed, dict) else None))
            fields = payload if isinstance(payload, dict) else {}
            header = fields.get("header")
            shown = fields if not isinstance(header, dict) else header
            if fields.get("type") == "url_verification" and same(fields.get("token"), self._token.reveal()):
                # Feishu signs events; that it signs this too, it doesn't say.
                return JSONResponse({"challenge": fields.get("challenge")})
            if not signed or ("token" in shown and not same(shown["token"], self._token.reveal())):
                raise unproven()
            with connecting():
                await self.take(payload, accept)
            return JSONResponse({})

        return door(answer)

    async def run(self, intake: Intake) -> None:
        """Look now and then whether Feishu still knows the app, and read back what was said while nobody was called."""
        with connecting():
            await self.who()
            intake.connected()
            await self._history.catch_up(intake)
            async with beside(f"what was missed on {self._own}", lambda: self._history.go_back(intake)):
                while True:
                    await self._look()
                    await asyncio.sleep(_LOOK)
                    await self._api.call("GET", "/bot/v3/info")
                    intake.connected()
                    await self._history.keep(intake, self._clock() - _RETRIES)


async def _after(first: bytes, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in chunks:
        yield chunk
