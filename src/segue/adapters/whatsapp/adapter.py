"""The WhatsApp adapter by the Cloud API: one object per number, which WhatsApp calls.

Law: each message carries the key of its delivery, which WhatsApp gives back with the word of what became of it: the
answer to the call is no receipt.
"""

import asyncio
import hashlib
import hmac
import time
from typing import Any, Literal

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp

from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import Attachments
from segue.adapters.shared.outcomes import connecting
from segue.adapters.shared.rates import Limiter
from segue.adapters.shared.webhooks import door, from_json, posted, prove
from segue.adapters.whatsapp.graph import Graph
from segue.adapters.whatsapp.incoming import changes, heard, report
from segue.adapters.whatsapp.outgoing import Pace, message, recipient
from segue.adapters.whatsapp.payloads import Change
from segue.adapters.whatsapp.said import Carried
from segue.core.contracts.adapters import Accept, Arrived, Connection, Files, Intake
from segue.core.contracts.database import Clock
from segue.core.lanes import Address
from segue.core.messages import Arrival, Delivery, File, Sending
from segue.core.values import Secret
from segue.errors import Invalid

PROOF = "X-Hub-Signature-256"
_LOOK = 300.0
"""Seconds between two looks at whether WhatsApp still knows the token."""
_PATIENCE = 1.0
"""Seconds that a call waits for its turn by itself; for longer, the gateway does."""
_CHATS = 10_000


class WhatsApp:
    """Speaks to WhatsApp as one number of a business, and is called with what people say to it."""

    platform = "whatsapp"
    sending = Sending.BLIND
    connection = Connection.ANY
    buttons: Literal[True] = True
    any_id: Literal[True] = True
    largest_file = 100 * 1024 * 1024
    largest_body = 4 * 1024 * 1024
    """Bytes of a call: WhatsApp's own limit is 3 MB."""
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
        self._pace = pace
        self._clock = clock
        self._limiter = Limiter(ticks, _PATIENCE)
        self._attachments = Attachments(files)
        self._newest: dict[str, str] = {}
        """The newest message of each chat: by it, it is shown that somebody writes."""

    async def close(self) -> None:
        """Let go of the connections."""
        await self._graph.close()

    async def run(self, intake: Intake) -> None:
        """See now and then whether WhatsApp still knows the number and the token."""
        with connecting():
            while True:
                await self._graph.about()
                intake.connected()
                await asyncio.sleep(_LOOK)

    def fits(self, text: str) -> bool:
        """Say yes: an answer is one message, since each is paid for; what is too long for a text goes as a document."""
        del text
        return True

    async def send(self, delivery: Delivery) -> str:
        """Send one message."""
        chat = delivery.address.chat
        about = {**recipient((chat, *delivery.chats)), "biz_opaque_callback_data": delivery.key[:512]}
        said = await message(delivery, self._graph, self._files)
        await self._limiter.turn({"overall": self._pace.overall})
        async with self._limiter.paced({f"chat/{chat}": self._pace.chat}):
            return await self._graph.send(**about, **said)

    async def typing(self, address: Address) -> None:
        """Show that somebody writes, and that the newest message there was read."""
        if newest := self._newest.get(address.chat):
            await self._graph.typing(newest)

    def webhook(self, accept: Accept) -> ASGIApp:
        """An ASGI application that answers 2xx only after `accept` returned."""

        async def answer(request: Request) -> Response:
            if request.method == "GET":
                return self._shake_hands(request)
            body = await posted(request, self.largest_body)
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
            told = changes(payload, self._graph.number)
        except Invalid as error:
            await accept(self._own.letter(payload, error))
            return
        for change in told:
            for raw in change.messages:
                await self._own.take(self._heard(raw, change), raw, accept)
            for raw in change.statuses:
                await self._own.take(report(raw, self._own), raw, accept)

    async def _heard(self, raw: object, change: Change) -> Arrived | None:
        said = heard(raw, change.contacts, self._clock())
        if said is None:
            return None
        arrival = said.arrival(self._own, {str(change.metadata.get("display_phone_number")).lstrip("+")})
        self._remember(arrival)
        return self._own.unfetched(arrival, lambda: self._fetch(said.file), raw)

    def _remember(self, arrival: Arrival) -> None:
        if not arrival.heard.parts or arrival.edits:
            return
        if len(self._newest) > _CHATS:
            self._newest.clear()
        self._newest.update(dict.fromkeys((arrival.place.address.chat, *arrival.chat_aliases), arrival.message))

    async def _fetch(self, file: Carried | None) -> list[File | str]:
        if file is None:
            return []
        return [await self._attachments.file(file.named, file.id, lambda: self._graph.file(file.id))]


def signature(secret: Secret, body: bytes) -> str:
    """The signature that WhatsApp makes of a body; an empty one without a secret."""
    known = secret.reveal().encode()
    return f"sha256={hmac.new(known, body, hashlib.sha256).hexdigest()}" if known else ""
