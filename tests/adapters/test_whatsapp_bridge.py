"""What a linked device may be told that crabline can't tell: the bridge on a Baileys that does what a test says."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from segue.adapters.whatsapp import WhatsAppByPhone, bridge
from segue.adapters.whatsapp.bridge import Line
from segue.core.contracts.adapters import Accepted, Arrived
from segue.core.messages import plain_text
from segue.errors import Disconnected, SendLater, SendUnsure
from segue.testing import Shelf
from segue.testing.contracts.base import a_delivery
from segue.testing.harness import Given
from segue.testing.inbox import Inbox
from tests.servers import linked_devices

Json = dict[str, Any]
ME, LID, ANN = "15550000000@s.whatsapp.net", "99@lid", "4915100000501@s.whatsapp.net"


class Baileys:
    """The other end of that Baileys."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.lines: list[Json] = []
        """All that it has told."""

    def tell(self, **line: Any) -> None:
        self._writer.write(f"{json.dumps(line)}\n".encode())

    def opens(self) -> None:
        self.tell(on="ev", name="creds.update", value={"me": {"id": ME, "lid": LID}})
        self.tell(on="ev", name="connection.update", value={"connection": "open"})

    def comes(self, id: str, chat: str = ANN, kind: str = "inactive") -> None:
        """The stanza of a message comes, and Baileys says that it was received."""
        self.tell(on="ws", name="CB:message", value={"attrs": {"id": id}})
        self.tell(frame=f"received {id}", xml=f"<receipt id='{id}' to='{chat}' type='{kind}'/>")

    def says(self, id: str, message: Json, chat: str = ANN, *, mine: bool = False) -> None:
        """Somebody says something: it comes, and Baileys tells of it."""
        self.comes(id, chat, "sender" if mine else "inactive")
        key = {"id": id, "remoteJid": chat, "fromMe": mine}
        told = {"key": key, "message": message, "messageTimestamp": 1_790_000_000, "pushName": "Ann"}
        self.tell(on="ev", name="messages.upsert", value={"messages": [told], "type": "notify"})

    async def told(self, what: str) -> Any:
        """The next thing of its kind that it tells."""
        async with asyncio.timeout(60):
            while what not in (line := json.loads(await self._reader.readline())):
                self.lines.append(line)
        self.lines.append(line)
        return line[what]


class World:
    """A device, and what it takes in."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.shelf = Shelf()
        self.adapter = WhatsAppByPhone("phone", folder, self.shelf, str(port))
        self.inbox = Inbox()
        self.kept = asyncio.Event()
        self.baileys: Baileys
        self.life: asyncio.Task[None]

    async def accept(self, arrived: Arrived) -> Accepted:
        await self.kept.wait()
        return await self.inbox.accept(arrived)


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    linked_devices()
    real = (bridge.modules() / "baileys" / "lib" / "index.js").as_uri()
    library = tmp_path / "modules" / "baileys" / "lib" / "index.js"
    library.parent.mkdir(parents=True)
    fake = Path(__file__).parent.parent / "servers" / "baileys.mjs"
    library.write_text(fake.read_text().replace("REAL", real))
    (library.parent / "package.json").write_text('{"type": "module"}')
    monkeypatch.setattr("segue.adapters.whatsapp.bridge.modules", lambda: tmp_path / "modules")
    connected = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(lambda *both: connected.set_result(both), "127.0.0.1", 0)
    made = World(tmp_path / "device", server.sockets[0].getsockname()[1])
    made.folder.mkdir()
    (made.folder / "sent-left").write_text("a plan that was on its way when Segue was killed")
    (made.folder / "fetched-left").write_text("a picture that had just come")
    given = Given(made.accept)
    made.life = asyncio.create_task(made.adapter.run(given))
    try:
        async with asyncio.timeout(60):
            made.baileys = Baileys(*await connected)
        made.baileys.opens()
        await given.is_well()
        yield made
    finally:
        made.life.cancel()
        await asyncio.wait([made.life])
        made.baileys._writer.close()
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize(
    "odd",
    [
        {"protocolMessage": {"type": 0}},
        {"protocolMessage": {"type": 14, "editedMessage": {"ephemeralMessage": {}}}},
        {"protocolMessage": {"type": 14, "editedMessage": {"conversation": "of what?"}}},
        {"ephemeralMessage": {}},
    ],
)
async def test_nobody_ends_the_line_by_an_odd_message(world: World, odd: Json) -> None:
    world.kept.set()
    world.baileys.says("3A01", odd)
    world.baileys.says("3A02", {"conversation": "hello"})
    await world.inbox.gets("hello")
    assert await world.baileys.told("frame") == "received 3A01"


async def test_a_message_that_baileys_cant_read_is_a_letter_and_holds_nothing_up(world: World) -> None:
    """Such as a reaction to nothing: Baileys has said that it was received when it breaks, and then tells nobody."""
    there = (bridge.modules() / "baileys" / "lib" / "index.js").read_text()
    real = Path(there.partition('export * from "file://')[2].partition('"')[0]).parent
    assert "'error in handling message'" in (real / "Socket" / "messages-recv.js").read_text()
    world.kept.set()
    world.baileys.comes("3A01")
    world.baileys.tell(breaks="no key", node=f"<message from='{ANN}' type='reaction' id='3A01' t='1'><enc/></message>")
    assert await world.baileys.told("frame") == "received 3A01"
    assert ["no key" in letter.raw for letter in world.inbox.letters] == [True]
    # One that breaks after it was told of is taken in as it was told.
    world.baileys.says("3A02", {"conversation": "hello"})
    world.baileys.tell(breaks="too late", node=f"<message from='{ANN}' id='3A02'/>")
    assert await world.baileys.told("frame") == "received 3A02"
    world.baileys.says("3A03", {"conversation": "again"})
    await world.inbox.gets("again")
    assert (world.inbox.texts, len(world.inbox.letters)) == (["hello", "again"], 1)


@pytest.mark.parametrize("chat", [ME, LID])
async def test_also_a_note_to_oneself_was_received_once_it_is_kept(world: World, chat: str) -> None:
    world.baileys.says("3A01", {"conversation": "a note"}, chat, mine=True)
    assert await world.baileys.told("handed") == "received 3A01"
    assert not [line for line in world.baileys.lines if "frame" in line], "WhatsApp forgets it before it is kept"
    world.kept.set()
    assert await world.baileys.told("frame") == "received 3A01"
    [note] = world.inbox.arrivals
    assert {note.speaker.identity.user, *note.speaker.aliases} == {ME, LID}
    assert note.place.address.chat == chat
    # What its person says to others is none of Segue's, and waits for nothing.
    world.baileys.says("3A02", {"conversation": "to Ann"}, mine=True)
    assert await world.baileys.told("frame") == "received 3A02"
    assert len(world.inbox.arrivals) == 1


async def test_what_a_message_that_is_no_text_holds_is_said(world: World) -> None:
    world.kept.set()
    world.baileys.says("3A01", {"contactMessage": {"displayName": "Ben", "vcard": "BEGIN:VCARD"}})
    world.baileys.says("3A02", {"pollCreationMessageV3": {"name": "Tea?"}})
    world.baileys.says("3A03", {"reactionMessage": {"text": "\U0001f44d"}})
    world.baileys.says("3A04", {"conversation": "hello"})
    await world.inbox.gets("hello")
    card, poll, _ = world.inbox.arrivals
    assert plain_text(card.parts) == "Contact: Ben"
    assert poll.remarks == ("They sent something that isn't understood here (poll).",)


async def test_a_large_file_takes_as_long_as_it_takes(world: World) -> None:
    sending = asyncio.create_task(world.adapter.send(a_delivery(world.adapter._own.address(ANN), "look")))
    message = await world.baileys.told("sends")
    # The file goes up for longer than word of it would be waited for.
    world.baileys.tell(wait=True)
    world.baileys.tell(on="ws", name="sent")
    world.baileys.tell(on="ws", name="CB:ack,class:message", value={"attrs": {"id": message}})
    assert await sending == message


async def test_a_message_of_which_whatsapp_says_nothing_is_unsure(world: World) -> None:
    sending = asyncio.create_task(world.adapter.send(a_delivery(world.adapter._own.address(ANN), "hello")))
    await world.baileys.told("sends")
    world.baileys.tell(on="ws", name="sent")
    await world.baileys.told("waits")
    world.baileys.tell(wait=True)
    with pytest.raises(SendUnsure, match="didn't say that it has it"):
        await sending


@pytest.mark.parametrize(("pieces", "remark"), [(1, ()), (100, ("a.bin wasn't taken in. It is larger than 20 MB.",))])
async def test_a_file_is_fetched_no_further_than_it_may_be_long(
    world: World, pieces: int, remark: tuple[str, ...]
) -> None:
    world.kept.set()
    document = {"fileName": "a.bin", "mimetype": "application/x-bin", "fileLength": 3, "pieces": pieces}
    world.baileys.says("3A01", {"documentMessage": document})
    await world.inbox.gets("")
    assert world.inbox.arrivals[0].remarks == remark
    assert await world.baileys.told("pieces") <= 22, "what comes is kept in memory, however long it is"


async def test_what_a_killed_bridge_left_of_files_goes(world: World) -> None:
    assert not [file.name for file in world.folder.iterdir() if "left" in file.name]


async def test_a_line_that_broke_takes_no_more_calls() -> None:
    heard, ours = asyncio.StreamReader(), Says()
    line = Line(heard, ours)  # type: ignore[arg-type]  # all of a writer that it needs
    heard.feed_data(b"no JSON\n")
    with pytest.raises(ValueError, match="Expecting value"):
        await line.read()
    with pytest.raises(SendLater):
        async with asyncio.timeout(90):
            await line.call("send")


async def test_a_bridge_that_ends_while_a_message_is_kept_is_no_mistake(world: World) -> None:
    world.baileys.says("3A01", {"conversation": "hello"})
    assert await world.baileys.told("handed") == "received 3A01"
    world.baileys.tell(on="ev", name="connection.update", value={"connection": "close"})
    line = world.adapter._bridge()
    async with asyncio.timeout(60):
        while not line._heard.at_eof():  # noqa: ASYNC110 -- nobody tells when
            await asyncio.sleep(0.01)
    world.kept.set()
    with pytest.raises(Disconnected, match="isn't there"):
        await world.life


class Says:
    """The way to a process that is told nothing."""

    def __init__(self) -> None:
        self.closed = False

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def write(self, line: bytes) -> None:
        """It goes nowhere."""
