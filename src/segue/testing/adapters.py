"""The fake platform's adapters: one class for each ability.

Each is written like an adapter for a real platform. It decodes updates, proves their sender, acknowledges only accepted
updates, and converts the platform's errors to Segue's.
"""

import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

import msgspec

from segue.adapters.shared.account import Account
from segue.core.contracts.adapters import Accept, Connection, Intake, Letter
from segue.core.lanes import Address, Identity, Place
from segue.core.messages import Arrival, Delivery, File, Sending, Speaker, Text
from segue.errors import MessageGone, SendLater, SendNever, SendUnsure, StoreError
from segue.testing import wire
from segue.testing.asgi import Application
from segue.testing.faults import ApiError, Call
from segue.testing.ledger import Attached
from segue.testing.platform import PROOF, Platform
from segue.testing.wire import Update

T = TypeVar("T")


class FakeAdapter:
    """An adapter for a fake platform. Without subclasses it can only send."""

    sending = Sending.BLIND
    connection = Connection.ANY

    def __init__(self, platform: Platform) -> None:
        self.platform = platform.name
        self.account = platform.account
        self.fits = platform.fits
        self.there = platform

    async def run(self, intake: Intake) -> None:
        """Do nothing: a webhook needs no connection."""

    async def send(self, delivery: Delivery) -> str:
        """Send one message."""
        message = await self.ask(
            Call.SEND, lambda: self.there.sends(delivery.address, delivery.text, delivery.key, delivery.only)
        )
        return message.id

    async def ask(self, call: Call, do: Callable[[], T]) -> T:
        """Call the platform, and convert its errors to Segue's."""
        try:
            return await self.there.faults.call(call, do)
        except ApiError as error:
            if error.status == 429 or error.status >= 500:
                raise SendLater(str(error), error.retry_after) from error
            raise SendNever(str(error)) from error
        except ConnectionRefusedError as error:
            raise SendLater(str(error)) from error
        except OSError as error:
            raise SendUnsure(str(error)) from error

    async def take(self, body: bytes, accept: Accept) -> None:
        """Accept one update.

        An unreadable update becomes a dead letter; the agent's own messages are skipped.
        """
        try:
            update = wire.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            await accept(Letter(self.platform, self.account, body.decode(errors="backslashreplace"), str(error)))
            return
        if not update.by.agent:
            arrival, own = await self.arrival(update), Account(self.platform, self.account)
            fetch = partial(self.fetch, update.files)
            await accept(own.unfetched(arrival, fetch, body.decode()) if update.files else arrival)

    async def fetch(self, files: Sequence[Attached]) -> list[File | str]:
        """Fetch and store files."""
        return [await self._fetched(file) for file in files]

    async def _fetched(self, file: Attached) -> File:
        async def content() -> AsyncIterator[bytes]:
            yield await self.ask(Call.FETCH, lambda: self.there.files[file.id])

        return await self.there.shelf.keep(file.name, "application/octet-stream", content())

    async def arrival(self, update: Update) -> Arrival:
        """Convert an update to an arrival."""
        return Arrival(
            place=await self.place(update),
            # The edited message's id would make the edit a duplicate, so an edit has its event's id.
            message=update.event if update.message in (update.edits, update.deletes) else update.message,
            speaker=Speaker(Identity(self.platform, self.account, update.by.id), update.by.name, update.by.aliases),
            parts=(
                *((Text(update.text),) if update.text else ()),
                *(File(file.name, "application/octet-stream", "", file.size) for file in update.files),
            ),
            at=update.at,
            seen_as=(update.event,),
            quotes=update.quotes,
            edits=update.edits,
            mentions_agent=update.mentions,
            chat_aliases=update.chat_aliases,
            deletes=update.deletes,
        )

    async def place(self, update: Update) -> Place:
        """Return the place of an update."""
        return Place(await self.address(update), update.kind, update.chat_name, update.topic)

    async def address(self, update: Update) -> Address:
        """Return the address of an update."""
        return Address(self.platform, self.account, update.space, update.chat, update.thread)


class Polling(FakeAdapter):
    """An adapter that fetches updates from the platform."""

    async def run(self, intake: Intake) -> None:
        """Accept messages until cancelled."""
        intake.connected()
        async for parcel in self.there.feed.parcels():
            await self.take(parcel.body, intake.accept)
            self.there.feed.acknowledge(parcel)


class Called(FakeAdapter):
    """An adapter that the platform calls by webhook."""

    def webhook(self, accept: Accept) -> Application:
        """Return an ASGI application that answers 200 once an update is accepted."""

        async def app(
            scope: dict[str, Any],
            receive: Callable[[], Awaitable[dict[str, Any]]],
            send: Callable[[dict[str, Any]], Awaitable[None]],
        ) -> None:
            status = await self._answer(dict(scope["headers"]), await _body(receive), accept)
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        return app

    async def _answer(self, headers: dict[bytes, bytes], body: bytes, accept: Accept) -> int:
        given = headers.get(PROOF.encode(), b"")
        if not hmac.compare_digest(given, wire.proof(self.there.secret, body).encode()):
            return 401
        try:
            await self.take(body, accept)
        except StoreError:
            return 503
        return 200


class Threading(FakeAdapter):
    """An adapter whose platform has threads."""

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        """Open a thread."""
        return await self.ask(Call.OPEN_THREAD, lambda: self._open(parent, title, key))

    def _open(self, parent: Address, title: str, key: str) -> Address:
        chat = self.there.at(parent)
        known = self.there.ledger.opened(key)
        return self.there.address(*known or (chat.id, self.there.opens(chat, title, None, key)))


class Editing(FakeAdapter):
    """An adapter whose platform allows edits of messages."""

    async def edit(self, delivery: Delivery) -> None:
        """Replace a message's text."""
        try:
            await self.ask(Call.EDIT, lambda: self._edit(delivery))
        except SendNever as error:
            if isinstance(error.__cause__, ApiError) and error.__cause__.status == 404:
                raise MessageGone(str(error)) from error
            raise

    def _edit(self, delivery: Delivery) -> None:
        chat, _ = self.there.spot(delivery.address)
        self.there.rewrites(self.there.ledger.message(chat, delivery.message), delivery.text, None)


class Recognizing(FakeAdapter):
    """An adapter that finds its placeholder by id, where each chat counts its messages."""

    def ids_after(self, delivery: Delivery) -> Sequence[str]:
        """Return the ids after the answered message's."""
        answered = delivery.answered
        return [str(int(answered) + n) for n in range(1, 9)] if answered.isdecimal() else []

    async def is_placeholder(self, delivery: Delivery, message: str) -> bool:
        """Return whether a message is the agent's own placeholder."""
        chat, _ = self.there.spot(delivery.address)

        def looked() -> bool:
            found = self.there.ledger.message(chat, message) if self.there.ledger.has(chat, message) else None
            return found is not None and (found.by, found.text) == ("", delivery.placeholder.text)

        return await self.ask(Call.FIND, looked)


class Typing(FakeAdapter):
    """An adapter whose platform shows a typing indicator."""

    async def typing(self, address: Address) -> None:
        """Show the typing indicator."""
        await self.ask(Call.TYPING, lambda: self.there.typed.append(address))


class Whispering(FakeAdapter):
    """An adapter whose platform can show a message to one person only."""

    whispers: Literal[True] = True


class Finding(FakeAdapter):
    """An adapter whose platform finds messages by key."""

    async def find(self, delivery: Delivery) -> str | None:
        """Return the id of the message that an earlier attempt sent."""
        found = await self.ask(Call.FIND, lambda: self.there.ledger.keyed(delivery.key))
        return found.id if found else None


class Looking(FakeAdapter):
    """An adapter whose platform forgets keys. After a doubtful attempt it looks for the message first."""

    async def send(self, delivery: Delivery) -> str:
        """Send one message, unless an earlier attempt did."""
        if delivery.doubtful:
            known = await self.ask(Call.FIND, lambda: self.there.ledger.keyed(delivery.key))
            if known is not None:
                return known.id
        return await super().send(delivery)


async def _body(receive: Callable[[], Awaitable[dict[str, Any]]]) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(body)
