"""The WhatsApp adapter by a linked device: a phone's own account, which the bridge speaks for."""

import asyncio
import mimetypes
from pathlib import Path
from tempfile import NamedTemporaryFile

from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import Tries, content_of, whole
from segue.adapters.shared.downloads import LARGEST, NotFetched
from segue.adapters.shared.markup import utf16
from segue.adapters.whatsapp.bridge.line import Json, Line, opened
from segue.adapters.whatsapp.markup import LONGEST, render
from segue.adapters.whatsapp.payloads import decode
from segue.core.contracts.adapters import Accept, Connection, Files, Intake
from segue.core.lanes import Address, Kind, Place
from segue.core.messages import Arrival, Citation, Citing, Delivery, File, Sending, Text
from segue.core.values import Value
from segue.errors import Disconnected, Invalid, SendLater

LINK_AGAIN = "The device isn't linked any more. Take it out of segue.toml: `segue add whatsapp` links it again."
_CHATS = 10_000


class BridgedFile(Value, frozen=True):
    """A file of a message, which lies with WhatsApp."""

    kind: str
    media: str = ""
    name: str = ""
    size: int = 0

    @property
    def named(self) -> File:
        """The file as long as it isn't fetched."""
        media = self.media.partition(";")[0].strip()
        return File(self.name or f"{self.kind}{mimetypes.guess_extension(media) or ''}", media, "", self.size)


class Bridged(Value, frozen=True):
    """A message, as the bridge tells it."""

    n: int
    id: str
    people: tuple[str, ...]
    """Who wrote it, by each id that they have: number and LID, as JIDs."""
    at: float
    group: str = ""
    name: str = ""
    text: str = ""
    quotes: str = ""
    edits: str = ""
    deletes: str = ""
    forwarded: bool = False
    mentions: tuple[str, ...] = ()
    file: BridgedFile | None = None


class WhatsAppByPhone:
    """Speaks to WhatsApp as a device that is linked to somebody's account."""

    platform = "whatsapp"
    sending = Sending.BLIND
    connection = Connection.ONE
    largest_file = 100 * 1024 * 1024

    def __init__(self, account: str, folder: Path, files: Files, url: str = "") -> None:
        self.account = account
        self._own = Account(self.platform, account)
        self._folder = folder
        self._files = files
        self._url = url
        self._line: Line | None = None
        self._open = asyncio.Event()
        self._me: tuple[str, ...] = ()
        self._tries = Tries()
        self._newest: dict[str, str] = {}

    def fits(self, text: str) -> bool:
        """Whether a text goes out as one message."""
        return utf16(text) <= LONGEST // 2 or (utf16(text) <= LONGEST and utf16(render(text)) <= LONGEST)

    async def run(self, intake: Intake) -> None:
        """Keep the bridge up until cancelled; a message is acknowledged once it was accepted."""
        async with opened(self._folder, self._url) as line:
            self._line = line
            try:
                async for told in line.events():
                    await self._heed(told, line, intake)
            finally:
                self._line, self._me = None, ()
                self._open.clear()

    async def _heed(self, told: Json, line: Line, intake: Intake) -> None:
        match told["event"]:
            case "open":
                self._me = tuple(filter(None, told["me"].values()))
                self._open.set()
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
        found = await self._own.or_letter(self._read(told), told)
        if isinstance(found, Arrival):
            await accept(self._own.unfetched(found, lambda: self._fetch(told), told))
        else:
            await accept(found)

    async def _read(self, told: Json) -> Arrival:
        said: Bridged = decode(told, Bridged)
        if not said.people:
            raise Invalid("people", "nobody wrote it", "A message says who sent it.")
        first, *others = said.people
        place = Place(self._own.address(said.group), Kind.GROUP) if said.group else None
        if len(self._newest) > _CHATS:
            self._newest.clear()
        self._newest[said.group or first] = said.id
        words = (Text(said.text),) if said.text else ()
        return Arrival(
            place or Place(self._own.address(first), Kind.DM, said.name),
            f"deletes.{said.id}" if said.deletes else said.id,
            self._own.speaker(first, said.name, tuple(others)),
            (*(() if said.forwarded else words), *((said.file.named,) if said.file else ())),
            said.at,
            quotes=said.quotes,
            edits=said.edits,
            deletes=said.deletes,
            mentions_agent=any(one in self._me for one in said.mentions),
            chat_aliases=() if said.group else tuple(others),
            cites=tuple(Citation(part.text, kind=Citing.FORWARD) for part in words) if said.forwarded else (),
        )

    async def _fetch(self, told: Json) -> list[File | str]:
        said: Bridged = decode(told, Bridged)
        return [await self._tries.file(file.name, said.id, self._fetched(said.id, file))
                for file in ([said.file.named] if said.file else [])]  # fmt: skip

    async def _fetched(self, id: str, file: File) -> File:
        if file.size > LARGEST:
            raise NotFetched(f"It is larger than {LARGEST // 1024 // 1024} MB.")
        there = Path((await self._bridge().call("fetch", id=id))["path"])
        try:
            return await self._files.keep(file.name, file.media, whole(await asyncio.to_thread(there.read_bytes)))
        finally:
            await asyncio.to_thread(there.unlink, missing_ok=True)

    async def send(self, delivery: Delivery) -> str:
        """Send one message; it was sent once WhatsApp's server has it."""
        about = {"chat": delivery.address.chat, "key": delivery.key, "text": render(delivery.text)}
        if delivery.address.chat.endswith("@g.us") and delivery.answers:
            about["quoted"] = delivery.answered
        if delivery.file is None:
            return str((await self._bridge().call("send", **about))["id"])
        with NamedTemporaryFile(dir=self._folder, prefix="sent-") as content:
            content.write(await content_of(self._files, delivery.file))
            content.flush()
            more = {"path": content.name, "name": delivery.file.name, "media": delivery.file.media}
            return str((await self._bridge().call("send", **about, **more))["id"])

    async def typing(self, address: Address) -> None:
        """Show that somebody writes, and that the newest message there was read."""
        await self._bridge().call("typing", chat=address.chat, message=self._newest.get(address.chat, ""))

    def _bridge(self) -> Line:
        if self._line is None or not self._open.is_set():
            raise SendLater("WhatsApp isn't connected.")
        return self._line
