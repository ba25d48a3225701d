"""The Slack adapter: one object per account, which keeps a socket open or is called with signed events."""

import asyncio
import contextlib
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, Literal
from urllib.parse import parse_qsl

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import Attachments
from segue.adapters.shared.background import Gap, beside
from segue.adapters.shared.decoding import decode
from segue.adapters.shared.downloads import Limits, NotFetched, server_of
from segue.adapters.shared.order import Work, in_order
from segue.adapters.shared.outcomes import connecting
from segue.adapters.shared.rates import Limiter
from segue.adapters.shared.sockets import Socket, line_to
from segue.adapters.shared.threads import Openings
from segue.adapters.shared.webhooks import door, from_json, posted, prove, signed_at
from segue.adapters.slack.agent_view import WORKING, AgentView
from segue.adapters.slack.api import Api, Json
from segue.adapters.slack.events import Attachment
from segue.adapters.slack.history import missed
from segue.adapters.slack.incoming import Heard, Incoming, View
from segue.adapters.slack.markup import fits
from segue.adapters.slack.outgoing import Outgoing, Pace
from segue.core.contracts.adapters import Accept, Connection, Files, Intake, Letter
from segue.core.contracts.database import Clock
from segue.core.lanes import Address
from segue.core.messages import File, Sending
from segue.core.values import Moment, Secret
from segue.errors import Disconnected, MessageGone, SendError

_PATIENCE = 1.0
"""Seconds that a call waits for its turn by itself; for longer, the gateway does."""
_OVERLAP = 60.0
"""Seconds by which the kept place lies behind what was taken in: messages of several channels overtake each other."""
_PATIENT = 120.0
"""Seconds that Slack may ask to wait between two calls, when what was missed is read back later."""
_PRESSED, _SOON = {"interactive", "slash_commands"}, 1.0
"""What somebody waits for with their finger on it, and the seconds that it waits for what came before it."""
_LOOK = 60.0
"""Seconds between two looks at whether Slack still knows the token."""
_RETRIES = 600.0
"""Seconds for which Slack calls again by itself."""
_WINDOW = 300
"""Seconds for which a signature holds."""


class Slack:
    """Speaks to Slack as one app, by a socket that it opens itself."""

    platform = "slack"
    sending = Sending.READ_BACK
    connection = Connection.ONE
    buttons: Literal[True] = True
    whispers: Literal[True] = True
    largest_file = 100 * 1024 * 1024
    """Bytes of a file that can be uploaded in the time that a call may take; Slack takes ten times as many."""

    def __init__(
        self,
        account: str,
        api: Api,
        files: Files,
        *,
        view: View = View.CHAT,
        pace: Pace = Pace(),  # noqa: B008 -- frozen
        clock: Clock = time.time,
        ticks: Clock = time.monotonic,
    ) -> None:
        self.account = account
        self._own = Account(self.platform, account)
        self._api = api
        self._clock = clock
        self._incoming = Incoming(self._own, api, view, ticks)
        limiter = Limiter(ticks, _PATIENCE)
        self._agent = AgentView(api, limiter, view)
        self._outgoing = Outgoing(api, files, pace, limiter, self._agent)
        self._openings = Openings()
        self._attachments = Attachments(files, Limits(trusted=api.files, opens=(api.bearer,)))
        self._gap = Gap()
        self._place = 0.0
        """The time up to which what was said is taken in."""
        self.fits = fits
        self.send = self._outgoing.send
        self.edit = self._outgoing.edit
        self.find = self._outgoing.find
        self.grow = self._agent.grow
        self.rename = self._agent.rename

    async def close(self) -> None:
        self._openings.close()
        await self._api.close()

    async def run(self, intake: Intake) -> None:
        """Listen until cancelled; what can't be read back at once is read back beside that, with more patience."""
        with connecting():
            await self._api.who()
            read_back = partial(self._catch_up, intake, _PATIENT)
            async with beside(f"what was missed on {self._own}", lambda: self._gap.close_later(read_back)):
                await self._listen(intake)

    async def _listen(self, intake: Intake) -> None:
        """Keep a socket open; each is opened at an address that Slack gives for one connection."""
        while True:
            async with line_to("Slack", await self._api.socket()) as socket:
                await in_order(self._works(socket, intake))

    async def _works(self, socket: Socket, intake: Intake) -> AsyncIterator[Work]:
        """What there is to do about each envelope, until Slack asks for another socket."""
        async for raw in socket.told():
            told = from_json(raw)
            envelope = told if isinstance(told, dict) else {"payload": told}
            match envelope.get("type"):
                case "hello":
                    intake.connected()
                    yield Work(partial(self._catch_up, intake))
                case "disconnect" if envelope.get("reason") == "link_disabled":
                    raise Disconnected("Socket Mode is off. Turn it on in the app's settings.")
                case "disconnect":
                    return
                case kind:
                    yield self._taking(str(kind), envelope, socket, intake)

    def _taking(self, kind: str, envelope: Json, socket: Socket, intake: Intake) -> Work:
        """An envelope that is acknowledged once what it holds was accepted."""
        heard: Heard | None = None

        async def take() -> None:
            nonlocal heard
            heard = await self.take(kind, envelope.get("payload"), intake.accept)
            if "envelope_id" in envelope:
                await socket.say(json.dumps({"envelope_id": envelope["envelope_id"]}))

        async def after(_: int) -> None:
            if heard is not None:
                await self.let_go(heard)
                await self.keep(intake, heard.arrival.at)

        return Work(take, after, _SOON if kind in _PRESSED else None)

    async def keep(self, intake: Intake, at: Moment) -> None:
        """Keep the place, now and then."""
        self._place = max(self._place, at - _OVERLAP)
        await self._gap.keep(intake.cursor, f"{self._place:.6f}")

    async def _catch_up(self, intake: Intake, patience: float = 0.0) -> None:
        """Take in what was said while nobody listened: Slack tells a lost event again for a few minutes only."""
        known = await intake.cursor.read()
        self._place = float(known or int(self._clock()))
        if not known:
            # What was said before the first time isn't answered.
            await intake.cursor.keep(f"{self._place:.6f}")
        with self._gap.closing(self._own):
            for event in await missed(self._api, self._place, patience) if known else ():
                await self.take("events_api", {"event": event}, intake.accept)

    async def take(self, kind: str, payload: Any, accept: Accept) -> Heard | None:
        """Take in one thing that was delivered; returns the message, if it is one."""
        heard = await self._own.or_letter(self._incoming.read(kind, payload, self._clock()), payload)
        if isinstance(heard, Letter):
            await accept(heard)
            return None
        if heard is not None:
            self._agent.asked(heard)
            await accept(self._own.unfetched(heard.arrival, lambda: self._fetch(heard.event.files), payload))
        return heard

    async def let_go(self, heard: Heard) -> None:
        """Take buttons away that were used, where only one person sees them: elsewhere others may still press them."""
        press, chat = heard.press, heard.arrival.place.address.chat
        if press is None:
            return
        with contextlib.suppress(SendError, NotFetched):
            if press.container.is_ephemeral and press.response_url:
                await self._api.respond(press.response_url, delete_original=True)
            elif chat.startswith("D") and press.message.text:
                left = {"channel": chat, "ts": press.message.ts, "text": press.message.text}
                await self._api.call("chat.update", attachments=[], **left)

    async def _fetch(self, attachments: Sequence[Attachment]) -> list[File | str]:
        return [await self._attachments.file(file.named, file.id, partial(self._find, file)) for file in attachments]

    async def _find(self, file: Attachment) -> str:
        if not (where := file.where):
            where = decode((await self._api.call("files.info", file=file.id)).get("file"), Attachment, "Slack").where
        if server_of(where) != server_of(self._api.files):
            raise NotFetched("It isn't kept by Slack.")
        return where

    async def delete(self, address: Address, message: str) -> None:
        with contextlib.suppress(MessageGone):
            await self._api.call("chat.delete", channel=address.chat, ts=message)

    async def typing(self, address: Address) -> None:
        """Show that the agent works, where Slack can: in a thread of the agent view."""
        await self._agent.status(address, WORKING)

    def mention(self, user: str) -> str:
        return f"<@{user}>"

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        return await self._openings.open(key, lambda: self._outgoing.open(parent.outside, title, key))


class SlackByEvents(Slack):
    """Speaks to Slack as one app, and is called with what people say to it."""

    def __init__(self, account: str, api: Api, signing_secret: Secret, files: Files, **more: Any) -> None:
        super().__init__(account, api, files, **more)
        self._secret = signing_secret

    def webhook(self, accept: Accept) -> ASGIApp:
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

    async def _listen(self, intake: Intake) -> None:
        """Read back what was said while nobody could be called, and check the token now and then."""
        intake.connected()
        await self._catch_up(intake)
        while True:
            await asyncio.sleep(_LOOK)
            await self._api.call("auth.test")
            intake.connected()
            await self.keep(intake, self._clock() - _RETRIES)

    def _prove(self, request: Request, body: bytes) -> None:
        """Raise 401 unless the body was signed, and not long ago."""
        at = signed_at(request, "X-Slack-Request-Timestamp", self._clock(), _WINDOW)
        prove(request, "X-Slack-Signature", signature(self._secret, at, body))


def signature(secret: Secret, at: str, body: bytes) -> str:
    """The signature that Slack makes of a body; an empty one without a secret."""
    signed = hmac.new(secret.reveal().encode(), b"v0:%s:%s" % (at.encode(), body), hashlib.sha256).hexdigest()
    return f"v0={signed}" if secret.reveal() else ""


def _called(request: Request, body: bytes) -> tuple[str, Any]:
    """The kind and the content of a call, as Socket Mode would have it."""
    text = body.decode(errors="backslashreplace")
    if not request.headers.get("Content-Type", "").startswith("application/x-www-form-urlencoded"):
        return "events_api", from_json(text)
    fields = dict(parse_qsl(text, keep_blank_values=True))
    return ("interactive", from_json(fields["payload"])) if "payload" in fields else ("slash_commands", fields)
