"""The Slack adapter: one object per account, which keeps a socket open."""

import contextlib
import logging
import time
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, Literal

from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import Attachments
from segue.adapters.shared.background import Gap, beside
from segue.adapters.shared.downloads import Limits, NotFetched
from segue.adapters.shared.order import Work, in_order
from segue.adapters.shared.outcomes import connecting
from segue.adapters.shared.rates import Limiter
from segue.adapters.shared.sockets import Socket
from segue.adapters.shared.threads import Openings
from segue.adapters.slack.agent_view import READY, WORKING, AgentView
from segue.adapters.slack.api import Api, Json
from segue.adapters.slack.directory import Directory
from segue.adapters.slack.events import Attachment, decode
from segue.adapters.slack.history import missed
from segue.adapters.slack.incoming import Heard, Incoming, View
from segue.adapters.slack.markup import escape, fits
from segue.adapters.slack.outgoing import Outgoing, Pace
from segue.adapters.slack.sockets import acknowledge, envelopes, opened
from segue.core.contracts.adapters import Accept, Connection, Files, Intake, Letter
from segue.core.contracts.database import Clock
from segue.core.lanes import Address
from segue.core.messages import File, Sending
from segue.core.values import Moment
from segue.errors import MessageGone, SendError

log = logging.getLogger(__name__)

_LONGEST_TITLE = 200
_PATIENCE = 1.0
"""Seconds that a call waits for its turn by itself; for longer, the gateway does."""
_OVERLAP = 60.0
"""Seconds by which the kept place lies behind what was taken in: messages of several channels overtake each other."""
_KEEP = 5.0
"""Seconds between two times that the place is kept."""
_PATIENT = 120.0
"""Seconds that Slack may ask to wait between two calls, when what was missed is read back later."""
_PRESSED, _SOON = {"interactive", "slash_commands"}, 1.0
"""What somebody waits for with their finger on it, and the seconds that it waits for what came before it."""


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
        self._agent = AgentView(self._api, limiter, view)
        self._outgoing = Outgoing(self._api, files, pace, limiter, self._agent)
        self._openings = Openings()
        self._attachments = Attachments(files, Limits(trusted=api.files, opens=(api.bearer,)))
        self._kept = 0.0
        self._gap = Gap()
        self.fits = fits
        self.send = self._outgoing.send
        self.edit = self._outgoing.edit
        self.find = self._outgoing.find
        self.grow = self._agent.grow
        self.rename = self._agent.rename

    async def close(self) -> None:
        """Let go of the connections."""
        self._openings.close()
        await self._api.close()
        await self._app.close()

    async def run(self, intake: Intake) -> None:
        """Keep a socket open until cancelled; an envelope is acknowledged once what it holds was accepted."""
        with connecting():
            await self._api.who()
            async with beside(f"what was missed on {self._own}", lambda: self._go_back(intake)):
                while True:
                    async with await opened(self._app) as socket:
                        await in_order(self._works(socket, intake))

    async def _works(self, socket: Socket, intake: Intake) -> AsyncIterator[Work]:
        """What there is to do about each envelope."""
        async for envelope in envelopes(socket):
            kind = str(envelope.get("type"))
            if kind == "hello":
                intake.connected()
                yield Work(partial(self._catch_up, intake))
            else:
                yield self._taking(kind, envelope, socket, intake)

    def _taking(self, kind: str, envelope: Json, socket: Socket, intake: Intake) -> Work:
        heard: list[Heard] = []

        async def take() -> None:
            if one := await self.take(kind, envelope.get("payload"), intake.accept):
                heard.append(one)
            await acknowledge(socket, envelope)

        async def after(_: int) -> None:
            for one in heard:
                await self.let_go(one)
                await self.keep(intake, one.arrival.at)

        return Work(take, after, _SOON if kind in _PRESSED else None)

    async def keep(self, intake: Intake, at: Moment) -> None:
        """Keep the place, now and then, if nothing that was said before it is missing."""
        if self._gap.is_closed and self._ticks() - self._kept >= _KEEP:
            self._kept = self._ticks()
            await intake.cursor.keep(f"{max(at - _OVERLAP, float(await intake.cursor.read() or 0)):.6f}")

    async def _catch_up(self, intake: Intake, patience: float = 0.0) -> None:
        """Take in what was said while nobody listened: Slack tells a lost event again for a few minutes only."""
        since = await intake.cursor.read()
        if not since:
            # What was said before the first time isn't answered.
            await intake.cursor.keep(f"{int(self._clock())}.000000")
        with self._gap.closing(self._own):
            for event in await missed(self._api, float(since), patience) if since else ():
                await self.take("events_api", {"event": event}, intake.accept)

    async def _go_back(self, intake: Intake) -> None:
        """Read back with more patience what couldn't be at once."""
        await self._gap.close_later(lambda: self._catch_up(intake, _PATIENT))

    async def take(self, kind: str, payload: Any, accept: Accept) -> Heard | None:
        """Take in one thing that was delivered; returns the message, if it is one."""
        reading = self._incoming.read(kind, payload, await self._api.who(), self._clock())
        heard = await self._own.or_letter(reading, payload)
        if isinstance(heard, Letter):
            await accept(heard)
            return None
        if heard is not None:
            self._agent.asked(heard.arrival, heard.team)
            await accept(self._own.unfetched(heard.arrival, lambda: self._fetch(heard.attachments), payload))
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
        where = file.where or decode((await self._api.call("files.info", file=file.id)).get("file"), Attachment).where
        if not self._api.is_own(where):
            raise NotFetched("It isn't kept by Slack.")
        return where

    async def delete(self, address: Address, message: str) -> None:
        """Delete a message of ours."""
        with contextlib.suppress(MessageGone):
            await self._api.call("chat.delete", channel=address.chat, ts=message)

    async def typing(self, address: Address) -> None:
        """Show that the agent works, where Slack can: in a thread of the agent view."""
        await self._agent.status(address, WORKING)

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
        await self._agent.status(opened, READY, name)
        return opened
