"""The HTTP adapter: one object per account, with the abilities that its platform has."""

import sys
import time
from typing import Literal
from urllib.parse import quote, urlencode
from uuid import uuid4

from segue.adapters.http.callback import Call, Callback, CalledFile, id_in
from segue.adapters.http.signature import Signing
from segue.adapters.http.webhook import FILE, PROOF, Webhook
from segue.core.contracts.adapters import Accept, Connection, Files, Intake
from segue.core.contracts.database import Clock
from segue.core.lanes import Address
from segue.core.messages import Delivery, File, Sending
from segue.core.questions import shown_by
from segue.core.values import Secret


class Http:
    """Speaks to one account over signed HTTP, both ways."""

    platform = "http"
    sending = Sending.KEYED
    connection = Connection.ANY
    whispers: Literal[True] = True
    buttons: Literal[True] = True
    largest_file = sys.maxsize
    """The platform fetches a file, and so says itself when it has enough."""

    def __init__(
        self, account: str, secret: Secret | Signing, callback: str, files: Files, clock: Clock = time.time
    ) -> None:
        self.account = account
        self._files = files
        self._url = callback
        self._signing = Signing.of(secret, account)
        self._clock = clock
        self._callback = Callback(callback, self._signing, clock)

    async def run(self, intake: Intake) -> None:
        """Do nothing: the platform calls, and there is nothing to register with it."""

    def webhook(self, accept: Accept) -> Webhook:
        """An ASGI application that answers 2xx only after `accept` returned."""
        return Webhook(self.account, self._signing, accept, self._files, self._clock, trusted=self._url)

    def fits(self, text: str) -> bool:
        """Say yes: the platform gets a text whole."""
        del text
        return True

    async def send(self, delivery: Delivery) -> str:
        """Send one message and return the platform's id of it."""
        return id_in(await self._callback.call(_call(delivery, self._signing)), "id")

    async def delete(self, address: Address, message: str) -> None:
        """Delete a message of ours; the same call may come again."""
        await self._callback.call(Call(f"delete/{message}", "delete", address, message=message))

    async def close(self) -> None:
        """Let go of the connections."""
        await self._callback.close()


class HttpOpens(Http):
    """For a platform that opens threads."""

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        """Open a thread; the same key gives the same thread."""
        answer = await self._callback.call(Call(key, "open_thread", parent, title=title))
        return Address(parent.platform, parent.account, parent.space, parent.chat, id_in(answer, "thread"))


class HttpEdits(Http):
    """For a platform that changes messages and shows that somebody writes."""

    async def edit(self, delivery: Delivery) -> None:
        """Replace the text of `delivery.message`."""
        # A key of its own for each call: a text may come back after another, and the same key would be taken for old.
        await self._callback.call(_call(delivery, self._signing, "edit", f"{delivery.key}/edit/{uuid4().hex}"))

    async def typing(self, address: Address) -> None:
        """Show that somebody writes."""
        await self._callback.call(Call(f"typing/{uuid4().hex}", "typing", address))


class HttpOpensAndEdits(HttpOpens, HttpEdits):
    """For a platform that does both."""


def _call(delivery: Delivery, signing: Signing, kind: Literal["message", "edit"] = "message", key: str = "") -> Call:
    return Call(
        key=key or delivery.key,
        kind=kind,
        address=delivery.address,
        text=delivery.text,
        message=delivery.message if kind == "edit" else "",
        in_reply_to=delivery.answered,
        answers=delivery.answers,
        session=delivery.session,
        choices=delivery.choices,
        question=shown_by(delivery.key),
        only=delivery.only,
        file=_offered(delivery.address.account, delivery.file, signing) if delivery.file else None,
    )


def _offered(account: str, file: File, signing: Signing) -> CalledFile:
    query = urlencode({FILE: file.where, PROOF: signing.prove_file(file.where)})
    return CalledFile(file.name, file.media, f"/in/http/{quote(account)}?{query}")
