"""The WhatsApp adapter by the Cloud API: one object per number, which WhatsApp calls."""

import asyncio
import hashlib
import hmac
import logging
import time
from typing import Any, Literal

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp

from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import Tries
from segue.adapters.shared.downloads import LARGEST, Limits, NotFetched, fetching
from segue.adapters.shared.outcomes import connecting
from segue.adapters.shared.webhooks import door, from_json, posted, prove
from segue.adapters.whatsapp.graph import Graph
from segue.adapters.whatsapp.incoming import Heard, Piece, heard, pieces, report
from segue.adapters.whatsapp.markup import fits
from segue.adapters.whatsapp.outgoing import Outgoing, Pace
from segue.adapters.whatsapp.payloads import Media, Message
from segue.core.contracts.adapters import Accept, Connection, Files, Intake, StatusReport
from segue.core.contracts.database import Clock
from segue.core.lanes import Address
from segue.core.messages import File, Sending
from segue.core.values import Secret
from segue.errors import Invalid

log = logging.getLogger(__name__)

PROOF = "X-Hub-Signature-256"
_LARGEST = 4 * 1024 * 1024
"""Bytes of a call: WhatsApp's own limit is 3 MB."""
_LOOK = 300.0
"""Seconds between two looks at whether WhatsApp still knows the token."""
_CHATS = 10_000


class WhatsApp:
    """Speaks to WhatsApp as one number of a business, and is called with what people say to it."""

    platform = "whatsapp"
    sending = Sending.BLIND
    connection = Connection.ANY
    buttons: Literal[True] = True
    any_id: Literal[True] = True
    largest_file = 100 * 1024 * 1024
    free_a_month = 1000
    """Messages that WhatsApp sends for nothing."""
    reports_within = 45.0

    def __init__(
        self,
        account: str,
        graph: Graph,
        files: Files,
        *,
        app_secret: Secret,
        verify_token: Secret,
        pace: Pace = Pace(),  # noqa: B008 -- frozen
        clock: Clock = time.time,
        ticks: Clock = time.monotonic,
    ) -> None:
        self.account = account
        self._own = Account(self.platform, account)
        self._graph = graph
        self._files = files
        self._app_secret = app_secret
        self._verify_token = verify_token
        self._clock = clock
        self._outgoing = Outgoing(graph, files, pace, ticks)
        self._tries = Tries()
        self._newest: dict[str, str] = {}
        """The newest message of each chat: by it, it is shown that somebody writes."""
        self.fits = fits
        self.send = self._outgoing.send

    async def close(self) -> None:
        """Let go of the connections."""
        await self._graph.close()

    async def run(self, intake: Intake) -> None:
        """See now and then whether WhatsApp still knows the number and the token."""
        with connecting():
            while True:
                await self._graph.about("display_phone_number", "verified_name")
                intake.connected()
                await asyncio.sleep(_LOOK)

    async def typing(self, address: Address) -> None:
        """Show that somebody writes, and that the newest message there was read."""
        if message := self._newest.get(address.chat):
            await self._outgoing.typing(message)

    def webhook(self, accept: Accept) -> ASGIApp:
        """An ASGI application that answers 2xx only after `accept` returned."""

        async def answer(request: Request) -> Response:
            if request.method == "GET":
                return self._shake_hands(request)
            body = await posted(request, _LARGEST)
            prove(request, PROOF, signature(self._app_secret, body))
            await self.take(from_json(body), accept)
            return Response()

        return door(answer)

    def _shake_hands(self, request: Request) -> Response:
        """Show WhatsApp that the address is ours: the host gave both sides the same word."""
        asked, known = request.query_params, self._verify_token.reveal()
        shown = asked.get("hub.verify_token", "")
        right = bool(known) and hmac.compare_digest(shown.encode(), known.encode())
        if asked.get("hub.mode") != "subscribe" or not right:
            raise HTTPException(403, "The verify token is another one.")
        return PlainTextResponse(asked.get("hub.challenge", ""))

    async def take(self, payload: Any, accept: Accept) -> None:
        """Take in all that one call tells, each thing by itself."""
        try:
            told = list(pieces(payload, self._graph.number))
        except Invalid as error:
            await accept(self._own.letter(payload, error))
            return
        for piece in told:
            found = await self._own.or_letter(self._read(piece), piece.raw)
            if isinstance(found, Heard):
                await self._hear(found, piece.raw, accept)
            elif found is not None:
                await accept(found)

    async def _hear(self, found: Heard, raw: object, accept: Accept) -> None:
        self._remember(found)
        await accept(self._own.unfetched(found.arrival, lambda: self._fetch(found.media), raw))

    async def _read(self, piece: Piece) -> Heard | StatusReport | None:
        if piece.kind is Message:
            return heard(piece, self._own, self._clock())
        return report(piece.raw, self._own)

    def _remember(self, found: Heard) -> None:
        if not found.arrival.heard.parts or found.arrival.edits:
            return
        if len(self._newest) > _CHATS:
            self._newest.clear()
        chats = (found.arrival.place.address.chat, *found.arrival.chat_aliases)
        self._newest.update(dict.fromkeys(chats, found.arrival.message))

    async def _fetch(self, media: Media | None) -> list[File | str]:
        if media is None:
            return []
        return [await self._tries.file(media.filename or "The file", media.id, self._fetched(media))]

    async def _fetched(self, media: Media) -> File:
        lies = await self._graph.media(media.id)
        size, url = lies.get("file_size"), str(lies.get("url", ""))
        if isinstance(size, int) and size > LARGEST:
            raise NotFetched(f"It is larger than {LARGEST // 1024 // 1024} MB.")
        if not self._graph.is_own(url):
            raise NotFetched("It isn't kept by WhatsApp.")
        kind = media.mime_type.partition("/")[0] or "file"
        file = media.named(kind)
        async with fetching(url, Limits(trusted=url, opens=(self._graph.bearer,))) as chunks:
            return await self._files.keep(file.name, file.media, chunks)


def signature(secret: Secret, body: bytes) -> str:
    """The signature that WhatsApp makes of a body; an empty one without a secret."""
    known = secret.reveal().encode()
    return f"sha256={hmac.new(known, body, hashlib.sha256).hexdigest()}" if known else ""
