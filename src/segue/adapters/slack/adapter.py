"""The Slack adapter: one object per account, which keeps a socket open or is called with events."""

import asyncio
import contextlib
import hashlib
import hmac
import logging
import time
from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import Tries
from segue.adapters.shared.downloads import LARGEST, Limits, NotFetched, fetching
from segue.adapters.shared.outcomes import connecting
from segue.adapters.shared.rates import Limiter
from segue.adapters.shared.threads import Openings
from segue.adapters.shared.webhooks import door, from_json, posted, prove
from segue.adapters.slack.agent_view import READY, WORKING, AgentView
from segue.adapters.slack.api import Api
from segue.adapters.slack.directory import Directory
from segue.adapters.slack.events import Attachment, Press, decode
from segue.adapters.slack.history import missed
from segue.adapters.slack.incoming import Heard, Incoming, View
from segue.adapters.slack.markup import escape, fits
from segue.adapters.slack.outgoing import Outgoing, Pace
from segue.adapters.slack.sockets import Socket, opened
from segue.core.contracts.adapters import Accept, Connection, Files, Intake, Letter
from segue.core.contracts.database import Clock
from segue.core.lanes import Address
from segue.core.messages import Delivery, File, Sending
from segue.core.values import Secret
from segue.errors import Disconnected, MessageGone, SendError

log = logging.getLogger(__name__)

_LONGEST_TITLE = 200
_PATIENCE = 1.0
"""Seconds that a call waits for its turn by itself; for longer, the gateway does."""
_OVERLAP = 60.0
"""Seconds by which the kept place lies behind what was taken in: messages of several channels overtake each other."""
_KEEP = 5.0
"""Seconds between two times that the place is kept."""
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
    largest_file = 1024 * 1024 * 1024

    def __init__(
        self,
        account: str,
        api: Api,
        app: Api,
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
        self._app = app
        """The same with the token that opens sockets."""
        self._files = files
        self._clock = clock
        self._ticks = ticks
        self._incoming = Incoming(self._own, Directory(self._api, ticks), view)
        limiter = Limiter(ticks, _PATIENCE)
        self._agent = AgentView(self._api, limiter) if view is View.AGENT else None
        self._outgoing = Outgoing(self._api, files, pace, limiter, self._agent)
        self._openings = Openings()
        self._tries = Tries()
        self._me = ""
        self._kept = 0.0
        self._whole = False
        """Nothing that was said before the newest event is missing, so the place may be kept."""
        self.fits = fits
        self.send = self._outgoing.send
        self.edit = self._outgoing.edit
        self.find = self._outgoing.find

    async def close(self) -> None:
        """Let go of the connections."""
        self._openings.close()
        await self._api.close()
        await self._app.close()

    async def who(self) -> str:
        """The id of the app's own user."""
        if not self._me:
            self._me = str((await self._api.call("auth.test")).get("user_id", ""))
        return self._me

    async def run(self, intake: Intake) -> None:
        """Keep a socket open until cancelled; an envelope is acknowledged once what it holds was accepted."""
        with connecting():
            await self.who()
            while True:
                async with opened(self._app) as socket:
                    await self._listen(socket, intake)

    async def _listen(self, socket: Socket, intake: Intake) -> None:
        """Take envelopes in until Slack asks for another socket."""
        async for envelope in socket.envelopes():
            match envelope.get("type"):
                case "hello":
                    intake.connected()
                    await self._catch_up(intake)
                case "disconnect" if envelope.get("reason") == "link_disabled":
                    raise Disconnected("Socket Mode is off. Turn it on in the app's settings.")
                case "disconnect":
                    return
                case kind:
                    ts = await self.take(str(kind), envelope.get("payload"), intake.accept)
                    await socket.acknowledge(envelope)
                    await self._keep(intake, ts)
        raise Disconnected("Slack closed the line.")

    async def _keep(self, intake: Intake, ts: float) -> None:
        if ts and self._whole and self._ticks() - self._kept >= _KEEP:
            self._kept = self._ticks()
            await intake.cursor.keep(f"{max(ts - _OVERLAP, float(await intake.cursor.read() or 0)):.6f}")

    async def _catch_up(self, intake: Intake) -> None:
        """Take in what was said while nobody listened: Slack tells a lost event again for a few minutes only."""
        since = await intake.cursor.read()
        if not since:
            # What was said before the first time isn't answered.
            await intake.cursor.keep(f"{int(self._clock())}.000000")
        try:
            found = await missed(self._api, float(since)) if since else []
        except SendError as error:
            self._whole = False
            log.warning("%s: what was missed is read back at the next connection: %s", self._own, error)
            return
        for event in found:
            await self.take("events_api", {"event": event}, intake.accept)
        self._whole = True

    async def take(self, kind: str, payload: Any, accept: Accept) -> float:
        """Take in one thing that was delivered; returns when it happened, if it is a message."""
        reading = self._incoming.read(kind, payload, await self.who(), self._clock())
        heard = await self._own.or_letter(reading, payload)
        if isinstance(heard, Letter):
            await accept(heard)
        elif heard is not None:
            await accept(self._own.unfetched(heard.arrival, lambda: self._fetch(heard.attachments), payload))
            if heard.press is not None:
                await self._let_go(heard.press, heard)
            return heard.arrival.at
        return 0.0

    async def _let_go(self, press: Press, heard: Heard) -> None:
        """Take the buttons away that were used, in a private chat: elsewhere others may still press them."""
        chat = heard.arrival.place.address.chat
        if not chat.startswith("D") or not press.message.text:
            return
        with contextlib.suppress(SendError):
            await self._api.call(
                "chat.update", channel=chat, ts=press.message.ts, text=press.message.text, attachments=[]
            )

    async def _fetch(self, attachments: Sequence[Attachment]) -> list[File | str]:
        return [await self._tries.file(file.named.name, file.id, self._fetched(file)) for file in attachments]

    async def _fetched(self, file: Attachment) -> File:
        if file.size > LARGEST:
            raise NotFetched(f"It is larger than {LARGEST // 1024 // 1024} MB.")
        where = file.where or decode((await self._api.call("files.info", file=file.id)).get("file"), Attachment).where
        if not self._api.is_own(where):
            raise NotFetched("It isn't kept by Slack.")
        async with fetching(where, Limits(trusted=self._api.files, opens=(self._api.bearer,))) as chunks:
            return await self._files.keep(file.named.name, file.mimetype, chunks)

    async def delete(self, address: Address, message: str) -> None:
        """Delete a message of ours."""
        with contextlib.suppress(MessageGone):
            await self._api.call("chat.delete", channel=address.chat, ts=message)

    async def typing(self, address: Address) -> None:
        """Show that the agent works, where Slack can: in a thread of the agent view."""
        if self._agent:
            await self._agent.status(address, WORKING)

    async def grow(self, delivery: Delivery, steps: Sequence[str]) -> bool:
        """Show more of a reply, and what the agent does, where Slack has streams: in the agent view."""
        return self._agent is not None and await self._agent.grow(delivery, steps)

    async def rename(self, thread: Address, title: str) -> None:
        """Change the title that Slack shows of a thread in the agent view."""
        if self._agent:
            await self._agent.rename(thread, title)

    def mention(self, user: str) -> str:
        """Somebody by their id."""
        return f"<@{user}>"

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        """Post the thread's root, unless it is there already."""
        return await self._openings.open(key, lambda: self._open(parent.outside, title, key))

    async def _open(self, parent: Address, title: str, key: str) -> Address:
        key = f"thread/{key}"
        name = title.strip()[:_LONGEST_TITLE] or "Session"
        # Whoever died while opening one opens it again soon.
        root = await self._outgoing.root(parent, key)
        opened = self._own.address(parent.chat, root or await self._outgoing.post(parent, escape(name), key))
        if self._agent:
            await self._agent.status(opened, READY, name)
        return opened


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
                await self.take(kind, payload, accept)
            return Response()

        return door(answer)

    async def run(self, intake: Intake) -> None:
        """Check the token now and then, and read back what was said while nobody could be called."""
        with connecting():
            await self.who()
            intake.connected()
            await self._catch_up(intake)
            while True:
                await asyncio.sleep(_LOOK)
                await self._api.call("auth.test")
                intake.connected()
                await self._keep(intake, self._clock() - _RETRIES)

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
