"""The harness of the fake platform and its personas."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec

from segue.core.contracts.adapters import Accept, Adapter, TakesWebhooks
from segue.core.lanes import Address, Kind
from segue.testing import wire
from segue.testing.asgi import Application, post
from segue.testing.chats import Someone
from segue.testing.harness import Given, Seen, living
from segue.testing.ledger import Message
from segue.testing.personas import Persona
from segue.testing.platform import PROOF


class FakeHarness:
    """Runs the contracts on a fake platform."""

    kinds = (Kind.DM, Kind.GROUP)

    def __init__(self, platform: Persona) -> None:
        self.platform = platform
        self.shelf = platform.shelf
        self._people: dict[str, Someone] = {}
        self._app: Application | None = None

    def adapter(self) -> Adapter:
        """Return a new adapter for the account."""
        return self.platform.adapter()

    @asynccontextmanager
    async def deliver(self, adapter: Adapter, accept: Accept) -> AsyncIterator[None]:
        """Deliver people's messages to the adapter inside the block."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(living(adapter, Given(accept)))
            if isinstance(adapter, TakesWebhooks):
                self._app = adapter.webhook(accept)
                await stack.enter_async_context(self.platform.calling(self._app))
            yield

    async def chat(self, kind: Kind, who: str = "Ann") -> Address:
        """Return a private chat or a new group."""
        chat = self.platform.dm(self._person(who)) if kind is Kind.DM else self.platform.group(kind=kind)
        return chat.address

    async def say(self, at: Address, text: str, who: str = "Ann") -> str:
        """Write a message as a person."""
        return self._person(who).says(text, self.platform.at(at)).id

    async def attach(self, at: Address, name: str, content: bytes, who: str = "Ann") -> str:
        """Send a file as a person."""
        return self._person(who).attaches(name, content, self.platform.at(at)).id

    async def change(self, at: Address, message: str, text: str, who: str = "Ann") -> None:
        """Edit a message as a person."""
        self._person(who).edits(self._message(at, message), text)

    async def quote(self, at: Address, message: str, text: str, who: str = "Ann") -> str:
        """Answer a message as a person."""
        return self._person(who).says(text, self.platform.at(at), quoting=self._message(at, message)).id

    async def read(self, at: Address) -> list[Seen]:
        """Return the agent's messages at an address."""
        return [Seen(message.id, message.text) for message in self.platform.at(at).messages if not message.by]

    async def read_as(self, at: Address, who: str) -> list[Seen]:
        """Return the agent's messages at an address that a person can see."""
        ids = ("", *self._person(who).ids)
        return [Seen(m.id, m.text) for m in self.platform.at(at).messages if not m.by and m.only in ids]

    async def delete(self, at: Address, message: str, who: str = "Ann") -> None:
        """Delete a message as a person."""
        self._person(who).deletes(self._message(at, message))

    async def redeliver(self) -> None:
        """Deliver everything again."""
        self.platform.tells_again()

    async def garble(self) -> None:
        """Deliver bytes that are no update, with a valid proof."""
        for body in (b"{", b"[]", b'{"event": 7}', b"\xff\xfe"):
            self.platform.feed.put(body, wire.proof(self.platform.secret, body))

    async def forge(self, at: Address, text: str) -> list[int]:
        """Deliver copies of the last update without proof, with a wrong one, and with the proof of the original."""
        if self._app is None:
            raise LookupError("Nothing is delivered to a webhook now.")
        real = self.platform.told[-1]
        forged = msgspec.structs.replace(
            wire.decode(real), event="forged", message="forged", chat=at.chat, thread=at.thread, text=text
        )
        body = wire.encode(forged)
        proofs = ("", wire.proof("a guess", body), wire.proof(self.platform.secret, real))
        return [(await post(self._app, "/", body, {PROOF: proof} if proof else {})).status for proof in proofs]

    async def nowhere(self) -> Address:
        """Return a chat that doesn't exist."""
        return self.platform.address("404")

    def _person(self, who: str) -> Someone:
        if who not in self._people:
            self._people[who] = self.platform.person(who)
        return self._people[who]

    def _message(self, at: Address, message: str) -> Message:
        return self.platform.ledger.message(self.platform.spot(at)[0], message)
