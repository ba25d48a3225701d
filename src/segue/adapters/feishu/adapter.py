"""The Feishu adapter: one object per account, which keeps a long connection open or is called.

Law: a body that isn't signed is refused in the same words, whatever is wrong with it. Otherwise the padding of one that
somebody made up would tell them, bit by bit, what is in a genuine one.
"""

import asyncio
import hashlib
import hmac
import time
from base64 import b64decode
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal

import msgspec
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from segue.adapters.feishu.api import Api
from segue.adapters.feishu.history import missed
from segue.adapters.feishu.incoming import PRESS, Incoming
from segue.adapters.feishu.markup import fits, mention
from segue.adapters.feishu.outgoing import PACE, Outgoing, Pace
from segue.adapters.feishu.sockets import Frame, acknowledge, opened, told
from segue.adapters.shared.account import Account
from segue.adapters.shared.background import Gap, beside
from segue.adapters.shared.decoding import text_in
from segue.adapters.shared.order import Work, in_order
from segue.adapters.shared.outcomes import connecting
from segue.adapters.shared.sockets import Socket
from segue.adapters.shared.webhooks import door, from_json, posted, prove, signed_at
from segue.core.contracts.adapters import Accept, Arrived, Connection, Files, Intake, Unfetched
from segue.core.contracts.database import Clock
from segue.core.lanes import Address, Kind
from segue.core.messages import Arrival, Sending
from segue.core.values import Moment, Secret, Value
from segue.errors import MessageGone

_SOON = 1.0
"""Seconds for which what was pressed waits for what came before it: Feishu wants it acknowledged in three."""
AT, NONCE, PROOF = "X-Lark-Request-Timestamp", "X-Lark-Request-Nonce", "X-Lark-Signature"
_WINDOW = 86_400
"""Seconds for which a signature holds. Feishu calls again after six hours, and doesn't say that it signs anew; what was
taken in is known for longer than this."""
_LOOK = 60.0
"""Seconds between two looks at whether Feishu still knows the app."""
_RETRIES = 600.0
"""Seconds in which Feishu surely calls again by itself, if it can: after 15 of them, and after five minutes."""
_BLOCK = 16
_PRIVATE = 100
"""Private chats that are remembered."""


class Position(Value, frozen=True):
    """How far what came was taken in: the time of the newest message, and private chats, the last used last."""

    since: Moment = 0.0
    chats: tuple[str, ...] = ()

    def after(self, arrived: Arrived) -> "Position":
        """The position once something was taken in; what is no message has the time of another clock."""
        arrival = arrived.arrival if isinstance(arrived, Unfetched) else arrived
        if not isinstance(arrival, Arrival) or not (arrival.parts or arrival.cites) or arrival.edits:
            return self
        private = (arrival.place.address.chat,) if arrival.place.kind is Kind.DM else ()
        return Position(max(self.since, arrival.at), _merged(self.chats, private))


def _merged(chats: tuple[str, ...], later: tuple[str, ...]) -> tuple[str, ...]:
    """Private chats, and those that were used later than they."""
    return (*(chat for chat in chats if chat not in later), *later)[-_PRIVATE:]


class Feishu:
    """Speaks to Feishu as one app, by a connection that it opens itself."""

    platform = "feishu"
    sending = Sending.KEYED
    connection = Connection.ONE
    buttons: Literal[True] = True
    largest_file = 30 * 1024 * 1024

    def __init__(self, account: str, api: Api, files: Files, *, pace: Pace = PACE, clock: Clock = time.time) -> None:
        self.account = account
        self._own = Account(self.platform, account)
        self._api = api
        self._clock = clock
        self._outgoing = Outgoing(api, files, pace, clock)
        self._incoming = Incoming(self._own, api, files, self._outgoing.sent)
        self._gap = Gap()
        self._at = Position()
        self._kept = frozenset[str]()
        """The private chats of the position that was kept last."""
        self.troubles: Sequence[str] = ()
        """The scopes that the app lacks."""
        self.fits = fits
        self.mention = mention
        self.send = self._outgoing.send
        self.edit = self._outgoing.edit
        self.open_thread = self._outgoing.open_thread
        self.close = api.close

    async def run(self, intake: Intake) -> None:
        """Listen until cancelled; what couldn't be read back at once is read back beside that."""
        with connecting():
            await self._api.who()
            read_back = partial(self._catch_up, intake)
            async with beside(f"what was missed on {self._own}", lambda: self._gap.close_later(read_back)):
                await self._listen(intake)

    async def _listen(self, intake: Intake) -> None:
        """Keep a connection open; what comes over it is acknowledged once it was accepted."""
        async with beside(f"the scopes of {self._own}", self._look), opened(self._api) as socket:
            intake.connected()
            await in_order(self._works(socket, intake))

    async def _look(self) -> None:
        self.troubles = list(filter(None, [await self._api.lacks()]))

    async def _works(self, socket: Socket, intake: Intake) -> AsyncIterator[Work]:
        """What there is to do about each thing that is told: nobody who pressed something waits for others' files."""

        async def take(payload: Any, frame: Frame) -> None:
            await self.take(payload, intake.accept)
            await acknowledge(socket, frame)

        yield Work(partial(self._catch_up, intake))
        async for frame, whole in told(socket):
            payload = from_json(whole)
            patience = _SOON if text_in(payload, "header", "event_type") == PRESS else None
            yield Work(partial(take, payload, frame), lambda _: self._keep(intake), patience)

    async def take(self, payload: Any, accept: Accept) -> None:
        arrived = await self._own.or_letter(self._incoming.read(payload), payload)
        if arrived is not None:
            await accept(arrived)
            self._at = self._at.after(arrived)

    async def _catch_up(self, intake: Intake) -> None:
        """Take in what was said while nobody listened: Feishu tells a lost event again for some hours only."""
        at = Position()
        with suppress(msgspec.DecodeError):
            at = msgspec.json.decode(await intake.cursor.read() or "{}", type=Position)
        self._kept = frozenset(at.chats)
        # What was said before the first time isn't answered.
        self._at = Position(at.since or self._clock(), _merged(at.chats, self._at.chats))
        with self._gap.closing(self._own):
            for event in await missed(self._api, at.since, at.chats) if at.since else ():
                await self.take(event, intake.accept)
        await self._keep(intake)

    async def _keep(self, intake: Intake, until: Moment = 0.0) -> None:
        """Keep the place: now and then, and whenever there is a new chat."""
        self._at = replace(self._at, since=max(self._at.since, until))
        place, chats = msgspec.json.encode(self._at).decode(), frozenset(self._at.chats)
        if self._gap.is_closed and chats - self._kept:
            await intake.cursor.keep(place)
            self._kept = chats
        await self._gap.keep(intake.cursor, place)

    async def delete(self, address: Address, message: str) -> None:
        del address
        with suppress(MessageGone):
            await self._api.call("DELETE", f"/im/v1/messages/{message}")


class FeishuByEvents(Feishu):
    """Speaks to Feishu as one app, and is called with what people say to it."""

    def __init__(self, account: str, api: Api, token: Secret, key: Secret, files: Files, **more: Any) -> None:
        super().__init__(account, api, files, **more)
        self._token, self._key = token, key

    def webhook(self, accept: Accept) -> ASGIApp:
        async def answer(request: Request) -> Response:
            body, key = await posted(request), self._key.reveal()
            if not key:
                # Anybody could sign and seal with it.
                raise _unproven()
            if signed := PROOF in request.headers:
                at, nonce = signed_at(request, AT, self._clock(), _WINDOW), request.headers.get(NONCE, "")
                prove(request, PROOF, hashlib.sha256(f"{at}{nonce}{key}".encode() + body).hexdigest())
            payload = from_json(unsealed(self._key, from_json(body)))
            match payload:
                case {"header": {"token": token}} | {"token": token} if not self._is_shown(token):
                    raise _unproven()
                case {"type": "url_verification", "token": _, "challenge": challenge}:
                    # Feishu signs events; that it signs this too, it doesn't say.
                    return JSONResponse({"challenge": challenge})
                case _ if signed:
                    with connecting():
                        await self.take(payload, accept)
                    return JSONResponse({})
                case _:
                    raise _unproven()

        return door(answer)

    async def _listen(self, intake: Intake) -> None:
        """Look now and then whether Feishu still knows the app, and keep the place up to which it surely called."""
        intake.connected()
        await self._catch_up(intake)
        while True:
            await self._look()
            await asyncio.sleep(_LOOK)
            await self._api.bot()
            intake.connected()
            await self._keep(intake, self._clock() - _RETRIES)

    def _is_shown(self, token: object) -> bool:
        given, wanted = str(token).encode("utf-8", "replace"), self._token.reveal().encode()
        return bool(wanted) and hmac.compare_digest(given, wanted)


def unsealed(key: Secret, sealed: object) -> bytes:
    """What a body holds, once it is decrypted; raises 401 if it was sealed with another key."""
    try:
        raw = b64decode(sealed["encrypt"], validate=True) if isinstance(sealed, dict) else b""
        reading = Cipher(AES(hashlib.sha256(key.reveal().encode()).digest()), CBC(raw[:_BLOCK])).decryptor()
        padded, padding = reading.update(raw[_BLOCK:]) + reading.finalize(), PKCS7(8 * _BLOCK).unpadder()
        return padding.update(padded) + padding.finalize()
    except (KeyError, TypeError, ValueError) as error:
        raise _unproven() from error


def _unproven() -> HTTPException:
    return HTTPException(401, "Send it encrypted with the key, and signed.")
