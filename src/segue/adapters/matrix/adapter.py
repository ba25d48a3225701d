"""The Matrix adapter: one user of one homeserver."""

import time
from collections.abc import Callable, Sequence
from uuid import uuid4

from segue.adapters.matrix.ciphers import Ciphers
from segue.adapters.matrix.content import edited, fits, mention, message
from segue.adapters.matrix.homeserver import Homeserver, Json
from segue.adapters.matrix.incoming import Incoming
from segue.adapters.matrix.invitations import Invitations
from segue.adapters.matrix.rooms import Rooms
from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import content_of
from segue.adapters.shared.decoding import inside
from segue.adapters.shared.outcomes import connecting
from segue.adapters.shared.rates import Bucket, Limiter
from segue.core.contracts.adapters import Connection, Files, Intake
from segue.core.contracts.database import Clock
from segue.core.contracts.lockers import Locker
from segue.core.lanes import Address, Kind
from segue.core.messages import Delivery, Sending
from segue.errors import Disconnected, MessageGone

_WAIT = 30_000
"""Milliseconds that the homeserver may hold a sync."""
_SOON = 5_000
"""The same while a message can't be read, and people are to be told."""
_TYPING = 6_000


class Matrix:
    """Speaks for one user, in the rooms that it was invited to."""

    platform = "matrix"
    sending = Sending.KEYED
    connection = Connection.ONE
    largest_file = 50 * 1024 * 1024
    """The size that homeservers take unless their owners say otherwise."""
    fits = staticmethod(fits)
    mention = staticmethod(mention)

    def __init__(
        self,
        account: str,
        server: Homeserver,
        files: Files,
        may_invite: Callable[[str], bool],
        pace: Bucket,
        clock: Clock = time.monotonic,
    ) -> None:
        self.account = account
        self._server = server
        self._files = files
        self._limiter = Limiter(clock)
        self._pace = pace
        self._rooms = Rooms(server)
        self._own = Account(self.platform, account, server.space)
        self._invitations = Invitations(self._own, server, self._rooms, may_invite)
        self._ciphers = Ciphers(server, self._rooms)
        self._incoming = Incoming(self._own, server, files, self._rooms, self._invitations, self._ciphers)

    def remember(self, locker: Locker) -> None:
        for part in (self._ciphers, self._rooms, self._incoming):
            part.remember(locker)

    @property
    def troubles(self) -> Sequence[str]:
        """The rooms that it can't come into, and what is in the way of encryption."""
        return [*self._invitations.troubles, *filter(None, [self._ciphers.trouble])]

    async def run(self, intake: Intake) -> None:
        """Follow the sync; its token moves on once everything before it was accepted."""
        self._ciphers.follows = True
        try:
            with connecting():
                await self._follow(intake)
        finally:
            self._ciphers.follows = False

    async def _follow(self, intake: Intake) -> None:
        owner, _ = await self._server.whoami()
        if owner != self._server.user:  # the agent would answer itself
            raise Disconnected(f"the access token is {owner}'s, not {self._server.user}'s. Put one of the two right.")
        self._rooms.forget()
        await self._ciphers.begin()
        await self._incoming.recall(intake.accept)
        since, wait = await intake.cursor.read(), 0
        while True:
            batch = await self._server.sync(since, wait)
            intake.connected()
            await self._incoming.take(batch, since, intake.accept)
            since, wait = str(batch["next_batch"]), _SOON if self._incoming.unread.hurry else _WAIT
            await intake.cursor.keep(since)

    async def send(self, delivery: Delivery) -> str:
        """Send one message; the homeserver knows a transaction that it has seen."""
        there = await self._now(delivery.address)
        if delivery.file is not None:
            file = await content_of(self._files, delivery.file)
            content = await self._ciphers.attached(there.chat, delivery.file, file, there.thread, delivery.text)
        else:
            private = (await self._rooms.get(there.chat)).kind is Kind.DM
            content = message(delivery.text, there.thread, "" if private else delivery.answered)
        return await self._write(delivery, there.chat, delivery.key, content)

    async def edit(self, delivery: Delivery) -> None:
        there = await self._now(delivery.address, delivery.message)
        # A homeserver takes edits of what somebody deleted, and nobody sees them: the final text is worth a look.
        if delivery.attempt:
            now = await self._server.event(there.chat, delivery.message)
            if "redacted_because" in inside(now, "unsigned"):
                raise MessageGone("Somebody deleted the message.")
        # A transaction of its own for each: a text may come back after another, and wouldn't be shown again.
        key, content = f"{delivery.key}/edit/{uuid4().hex}", edited(delivery.message, delivery.text)
        await self._write(delivery, there.chat, key, content)

    async def delete(self, address: Address, message: str) -> None:
        room = (await self._now(address, message)).chat
        # Asked again, it is the same redaction.
        await self._server.call("PUT", ("rooms", room, "redact", message, f"delete-{message}"), {})

    async def typing(self, address: Address) -> None:
        there = ("rooms", await self._rooms.now(address.chat), "typing", self._server.user)
        await self._server.call("PUT", there, {"typing": True, "timeout": _TYPING})

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        """Post the thread's root; the thread is named after it."""
        root = await self._ciphers.put((await self._now(parent)).chat, key, message(title))
        # Whoever wrote the parent into the settings needn't know its space; replies come from this one.
        return self._own.address(parent.chat, root)

    async def close(self) -> None:
        await self._server.close()

    async def _now(self, address: Address, event: str = "") -> Address:
        """Where an address is by now: a room may have been replaced."""
        self._ciphers.look()
        # Events aren't taken along: one that is edited stays where it was, what is said in a thread comes without it.
        chat, thread = await self._rooms.now(address.chat), address.thread
        if chat != address.chat and event and not await self._server.event(chat, event):
            chat = address.chat
        if chat != address.chat and thread and not await self._server.event(chat, thread):
            thread = ""
        return Address(address.platform, address.account, address.space, chat, thread)

    async def _write(self, delivery: Delivery, room: str, key: str, content: Json) -> str:
        async with self._limiter.paced(self._limiter.share(delivery, self._pace)):
            return await self._ciphers.put(room, key, content)
