"""The Slack adapter where Slack calls: events that are signed, and read back where nobody could be called."""

import asyncio
import hashlib
import hmac
from typing import Any
from urllib.parse import parse_qsl

from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from segue.adapters.shared.background import beside
from segue.adapters.shared.outcomes import connecting
from segue.adapters.shared.webhooks import door, from_json, posted, prove
from segue.adapters.slack.adapter import Slack
from segue.adapters.slack.api import Api
from segue.core.contracts.adapters import Accept, Files, Intake
from segue.core.values import Secret

_LOOK = 60.0
"""Seconds between two looks at whether Slack still knows the token."""
_RETRIES = 600.0
"""Seconds for which Slack calls again by itself."""
_WINDOW = 300
"""Seconds for which a signature holds."""


class SlackByEvents(Slack):
    """Speaks to Slack as one app, and is called with what people say to it."""

    def __init__(self, account: str, api: Api, signing_secret: Secret, files: Files, **more: Any) -> None:
        super().__init__(account, api, api, files, **more)
        self._secret = signing_secret

    def webhook(self, accept: Accept) -> ASGIApp:
        """An ASGI application that answers 2xx only after `accept` returned."""

        async def answer(request: Request) -> Response:
            body = await posted(request)
            self._prove(request, body)
            kind, payload = _called(request, body)
            if isinstance(payload, dict) and payload.get("type") == "url_verification":
                return JSONResponse({"challenge": payload.get("challenge")})
            with connecting():
                heard = await self.take(kind, payload, accept)
            return Response(background=BackgroundTask(self.let_go, heard) if heard else None)

        return door(answer)

    async def run(self, intake: Intake) -> None:
        """Check the token now and then, and read back what was said while nobody could be called."""
        with connecting():
            await self._api.who()
            intake.connected()
            await self._catch_up(intake)
            async with beside(f"what was missed on {self._own}", lambda: self._go_back(intake)):
                while True:
                    await asyncio.sleep(_LOOK)
                    await self._api.call("auth.test")
                    intake.connected()
                    await self.keep(intake, self._clock() - _RETRIES)

    def _prove(self, request: Request, body: bytes) -> None:
        """Raise 401 unless the body was signed, and not long ago."""
        shown = request.headers.getlist("X-Slack-Request-Timestamp")
        if len(shown) != 1 or not shown[0].isascii() or not shown[0].isdecimal():
            raise HTTPException(401, "Send one X-Slack-Request-Timestamp.")
        if abs(self._clock() - int(shown[0][:20])) > _WINDOW:
            raise HTTPException(401, "It was signed too long ago.")
        prove(request, "X-Slack-Signature", signature(self._secret, shown[0], body))


def signature(secret: Secret, at: str, body: bytes) -> str:
    """The signature that Slack makes of a body; an empty one without a secret."""
    if not secret.reveal():
        return ""
    return "v0=" + hmac.new(secret.reveal().encode(), b"v0:%s:%s" % (at.encode(), body), hashlib.sha256).hexdigest()


def _called(request: Request, body: bytes) -> tuple[str, Any]:
    """The kind and the content of a call, as Socket Mode would have it."""
    text = body.decode(errors="backslashreplace")
    if not request.headers.get("Content-Type", "").startswith("application/x-www-form-urlencoded"):
        return "events_api", from_json(text)
    fields = dict(parse_qsl(text, keep_blank_values=True))
    return ("interactive", from_json(fields["payload"])) if "payload" in fields else ("slash_commands", fields)
