"""The Feishu adapter where Feishu calls: with a signature over what came, and a body that only the key opens.

Law: a body that isn't signed is refused in the same words, whatever is wrong with it. Otherwise the padding of one that
somebody made up would tell them, bit by bit, what is in a genuine one.
"""

import asyncio
import hashlib
import hmac
from base64 import b64decode
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from segue.adapters.feishu.adapter import Feishu
from segue.adapters.feishu.api import Api
from segue.adapters.shared.background import beside
from segue.adapters.shared.outcomes import connecting
from segue.adapters.shared.webhooks import door, from_json, posted, prove, signed_at
from segue.core.contracts.adapters import Accept, Files, Intake
from segue.core.values import Secret

AT, NONCE, PROOF = "X-Lark-Request-Timestamp", "X-Lark-Request-Nonce", "X-Lark-Signature"
_WINDOW = 86_400
"""Seconds for which a signature holds. Feishu calls again after six hours, and doesn't say that it signs anew; what was
taken in is known for longer than this."""
_LOOK = 60.0
"""Seconds between two looks at whether Feishu still knows the app."""
_RETRIES = 600.0
"""Seconds in which Feishu surely calls again by itself, if it can: after 15 of them, and after five minutes."""
_BLOCK = 16


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
                at, nonce = signed_at(request, AT, self._clock(), _WINDOW), request.headers.get(NONCE, "")
                prove(request, PROOF, hashlib.sha256(f"{at}{nonce}{self._key.reveal()}".encode() + body).hexdigest())
            payload = from_json(opened(self._key, from_json(body)))
            match payload:
                case {"header": {"token": token}} | {"token": token} if not self._is_shown(token):
                    raise _unproven()
                case {"type": "url_verification", "token": _, "challenge": challenge}:
                    # Feishu signs events; that it signs this too, it doesn't say.
                    return JSONResponse({"challenge": challenge})
                case _:
                    """An event."""
            if not signed:
                raise _unproven()
            with connecting():
                await self.take(payload, accept)
            return JSONResponse({})

        return door(answer)

    async def run(self, intake: Intake) -> None:
        """Look now and then whether Feishu still knows the app, and read back what was said while nobody was called."""
        with connecting():
            await self._api.who()
            intake.connected()
            await self._history.catch_up(intake)
            async with beside(f"what was missed on {self._own}", lambda: self._history.go_back(intake)):
                while True:
                    await self._look()
                    await asyncio.sleep(_LOOK)
                    await self._api.bot()
                    intake.connected()
                    await self._history.keep(intake, self._clock() - _RETRIES)

    def _is_shown(self, token: object) -> bool:
        given, wanted = str(token).encode("utf-8", "replace"), self._token.reveal().encode()
        return bool(wanted) and hmac.compare_digest(given, wanted)


def opened(key: Secret, sealed: object) -> bytes:
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
