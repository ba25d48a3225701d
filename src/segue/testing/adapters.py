"""The fake platform's adapters: one class for each ability, so that what a persona can't do isn't there.

They are written as an adapter for a real platform would be: they decode what comes over the wire, prove who sent it,
acknowledge only what was accepted, and turn the platform's errors into Segue's.
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
    """Speaks for the account of a fake platform; alone it can only send."""

    sending = Sending.BLIND
    connection = Connection.ANY

    def __init__(self, platform: Platform) -> None:
        self.platform = platform.name
        self.account = platform.account
        self.fits = platform.fits
        self.there = platform

    async def run(self, intake: Intake) -> None:
        """Do nothing: whoever is called has nothing to keep up."""

    async def send(self, delivery: Delivery) -> str:
        """Send one message."""
        message = await self.ask(
            Call.SEND, lambda: self.there.sends(delivery.address, delivery.text, delivery.key, delivery.only)
        )
        return message.id

    async def ask(self, call: Call, do: Callable[[], T]) -> T:
        """Ask something of the platform, and say in Segue's words what went wrong."""
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
        """Take in one update; what can't be understood is kept as it came, the agent's own words are passed over."""
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
        """Fetch files, and keep them."""
        return [await self._fetched(file) for file in files]

    async def _fetched(self, file: Attached) -> File:
        async def content() -> AsyncIterator[bytes]:
            yield await self.ask(Call.FETCH, lambda: self.there.files[file.id])

        return await self.there.shelf.keep(file.name, "application/octet-stream", content())

    async def arrival(self, update: Update) -> Arrival:
        """An update as the gateway knows it."""
        return Arrival(
            place=await self.place(update),
            # An edit that goes by the id of what it edits must not be taken for a redelivery of it.
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
        """Where an update comes from, with what is known about it."""
        return Place(await self.address(update), update.kind, update.chat_name, update.topic)

    async def address(self, update: Update) -> Address:
        """The address of an update."""
        return Address(self.platform, self.account, update.space, update.chat, update.thread)


class Polling(FakeAdapter):
    """An adapter that fetches what the platform has to tell."""

    async def run(self, intake: Intake) -> None:
        """Take messages in until cancelled."""
        intake.connected()
        async for parcel in self.there.feed.parcels():
            await self.take(parcel.body, intake.accept)
            self.there.feed.acknowledge(parcel)


class Called(FakeAdapter):
    """An adapter that the platform calls."""

    def webhook(self, accept: Accept) -> Application:
        """An ASGI application that answers 200 once an update was accepted."""

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
    """An adapter whose platform lets messages be changed."""

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
    """An adapter that knows a placeholder of its own by its id, where messages of a chat are counted."""

    def ids_after(self, delivery: Delivery) -> Sequence[str]:
        """The next ids after what is answered."""
        answered = delivery.answered
        return [str(int(answered) + n) for n in range(1, 9)] if answered.isdecimal() else []

    async def is_placeholder(self, delivery: Delivery, message: str) -> bool:
        """Whether it is the agent's and says nothing yet."""
        chat, _ = self.there.spot(delivery.address)

        def looked() -> bool:
            found = self.there.ledger.message(chat, message) if self.there.ledger.has(chat, message) else None
            return found is not None and (found.by, found.text) == ("", delivery.placeholder.text)

        return await self.ask(Call.FIND, looked)


class Typing(FakeAdapter):
    """An adapter whose platform shows that somebody writes."""

    async def typing(self, address: Address) -> None:
        """Show it."""
        await self.ask(Call.TYPING, lambda: self.there.typed.append(address))


class Whispering(FakeAdapter):
    """An adapter whose platform shows a message to one person only."""

    whispers: Literal[True] = True


class Finding(FakeAdapter):
    """An adapter whose platform tells whether a message with a key is there."""

    async def find(self, delivery: Delivery) -> str | None:
        """The message that this delivery already made."""
        found = await self.ask(Call.FIND, lambda: self.there.ledger.keyed(delivery.key))
        return found.id if found else None


class Looking(FakeAdapter):
    """An adapter whose platform forgets keys after a while: in doubt it looks before it sends again."""

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
