"""The WhatsApp adapter by a linked device: a phone's own account, which the bridge speaks for."""

import asyncio
from pathlib import Path
from tempfile import NamedTemporaryFile

from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import Attachments, content_of
from segue.adapters.shared.decoding import decode
from segue.adapters.shared.downloads import LARGEST
from segue.adapters.shared.outcomes import connecting
from segue.adapters.whatsapp.bridge import Json, Line, opened
from segue.adapters.whatsapp.markup import fits, render
from segue.adapters.whatsapp.said import Said
from segue.core.contracts.adapters import Accept, Arrived, Connection, Files, Intake
from segue.core.lanes import Address
from segue.core.messages import Delivery, File, Sending
from segue.errors import Disconnected, SendLater

LINK_AGAIN = "The device isn't linked any more. Take it out of segue.toml: `segue add whatsapp` links it again."


class WhatsAppByPhone:
    """Speaks to WhatsApp as a device that is linked to somebody's account."""

    platform = "whatsapp"
    sending = Sending.BLIND
    connection = Connection.ONE
    largest_file = 100 * 1024 * 1024
    fits = fits

    def __init__(self, account: str, folder: Path, files: Files, url: str = "") -> None:
        self.account = account
        self._own = Account(self.platform, account)
        self._folder = folder
        self._files = files
        self._url = url
        self._line: Line | None = None
        """The bridge, while it is connected."""
        self._me: tuple[str, ...] = ()
        self._attachments = Attachments(files)

    async def run(self, intake: Intake) -> None:
        """Keep the bridge up until cancelled; a message is acknowledged once it was accepted."""
        with connecting():
            async with opened(self._folder, self._url) as line:
                try:
                    async for told in line.events():
                        await self._heed(told, line, intake)
                finally:
                    self._line = None

    async def _heed(self, told: Json, line: Line, intake: Intake) -> None:
        match told["event"]:
            case "open":
                self._line, self._me = line, tuple(filter(None, told["me"].values()))
                intake.connected()
            case "message":
                await self.take(told, intake.accept)
                line.acknowledge(told["n"])
            case "closed" if not told["final"]:
                raise Disconnected(f"The line to WhatsApp broke: {told['why']}.")
            case _:
                raise Disconnected(LINK_AGAIN)

    async def take(self, told: Json, accept: Accept) -> None:
        """Take in one message of the bridge's."""
        await self._own.take(self._heard(told), told, accept)

    async def _heard(self, told: Json) -> Arrived:
        said = decode(told, Said, "The bridge")
        return self._own.unfetched(said.arrival(self._own, self._me), lambda: self._fetch(said), told)

    async def _fetch(self, said: Said) -> list[File | str]:
        if said.file is None:
            return []
        return [await self._attachments.file(said.file.named, said.id, lambda: self._content(said.id))]

    async def _content(self, id: str) -> bytes:
        there = Path((await self._bridge().call("fetch", id=id, most=LARGEST))["path"])
        try:
            return await asyncio.to_thread(there.read_bytes)
        finally:
            await asyncio.to_thread(there.unlink, missing_ok=True)

    async def send(self, delivery: Delivery) -> str:
        """Send one message; it was sent once WhatsApp's server has it."""
        chat = delivery.address.chat
        quoted = delivery.answered if chat.endswith("@g.us") else ""
        about = {"chat": chat, "key": delivery.key, "text": render(delivery.text), "quoted": quoted}
        if delivery.file is None:
            return str((await self._bridge().call("send", **about))["id"])
        with NamedTemporaryFile(dir=self._folder, prefix="sent-") as content:
            await asyncio.to_thread(Path(content.name).write_bytes, await content_of(self._files, delivery.file))
            more = {"path": content.name, "name": delivery.file.name, "media": delivery.file.media}
            return str((await self._bridge().call("send", **about, **more))["id"])

    async def typing(self, address: Address) -> None:
        """Show that somebody writes, and that the newest message there was read."""
        await self._bridge().call("typing", chat=address.chat)

    def _bridge(self) -> Line:
        if self._line is None:
            raise SendLater("WhatsApp isn't connected.")
        return self._line
