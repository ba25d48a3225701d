"""Conversations by a linked device, end to end: a real gateway, the real Baileys, and crabline behind real sockets.

What crabline can't do (files, groups, edits, LIDs) comes as lines in the bridge's own protocol; a code to scan comes
from a server in front of it.
"""

import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from segue.adapters.whatsapp import WhatsAppAccount, WhatsAppByPhone
from segue.adapters.whatsapp.account import TERMS
from segue.adapters.whatsapp.phone import LINK_AGAIN
from segue.core.contracts.adapters import Accepted, Arrived
from segue.core.contracts.agents import Agent
from segue.core.contracts.probes import Point, Probe
from segue.core.lanes import Identity, Kind
from segue.core.messages import Citation, Citing
from segue.core.settings import AccountSettings, Quotes
from segue.database.transactions import unheeded
from segue.errors import Disconnected, Invalid, SendLater
from segue.runtime.gateway import Gateway
from segue.runtime.outbox import MAYBE
from segue.testing import EchoAgent, Shelf
from segue.testing.contracts.base import a_delivery
from segue.testing.harness import Given
from segue.testing.inbox import Inbox
from tests.in_process import gateway_on
from tests.servers.whatsapp import Phones, jid_of, pairing, phones
from tests.stories.files import KilledAt
from tests.stories.square import REMEMBERS

ANN = jid_of("Ann")
EVERYBODY = AccountSettings(public=True)


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[Phones]:
    async with phones(tmp_path) as made:
        made.link(tmp_path / "device")
        yield made


@asynccontextmanager
async def running(
    path: Path, there: Phones, agent: Agent, probe: Probe = unheeded, **settings: Any
) -> AsyncIterator[Gateway]:
    """A gateway with one linked device, which is connected."""
    adapter = WhatsAppByPhone("phone", path / "device", Shelf(), there.url)
    hosts = (Identity("whatsapp", "phone", ANN),)
    more: Any = {"account": EVERYBODY, "hosts": hosts, "probe": probe, "grace": 0.1, **settings}
    async with gateway_on(path, agent, adapter, **more) as gateway:
        await there.until(lambda: adapter._line is not None)
        yield gateway


async def answer(there: Phones, text: str) -> str:
    """Ann says something, and waits for the next thing that she is told."""
    before = len(there.texts)
    await there.says(text)
    await there.until(lambda: len(there.texts) > before)
    return there.texts[before][1]


async def test_a_linked_device_holds_several_conversations(there: Phones, tmp_path: Path) -> None:
    async with running(tmp_path, there, REMEMBERS, quotes=Quotes.ONCE):
        assert await answer(there, "cats") == "cats"
        assert await answer(there, "/sessions new dogs") == "dogs"
        assert "1. cats" in await answer(there, "/sessions")
        assert await answer(there, "/sessions 1") == "Back in the session that began with “cats”."
        assert await answer(there, "purr") == "cats | purr"
    modes = {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "device").iterdir()}
    assert modes == {0o600}, "others may read the keys of the device"
    assert stat.S_IMODE((tmp_path / "device").stat().st_mode) == 0o700


async def test_whatsapp_hears_that_a_message_was_received_once_it_is_kept(there: Phones, tmp_path: Path) -> None:
    adapter = WhatsAppByPhone("phone", tmp_path / "device", Shelf(), there.url)
    inbox, kept, asked = Inbox(), asyncio.Event(), asyncio.Event()

    async def accept(arrived: Arrived) -> Accepted:
        asked.set()
        await kept.wait()
        return await inbox.accept(arrived)

    given = Given(accept)
    life = asyncio.create_task(adapter.run(given))
    try:
        await given.is_well()
        message = await there.says("hold on to this")
        async with asyncio.timeout(60):
            await asked.wait()
        # Long enough for a receipt that nobody holds back.
        await asyncio.sleep(0.5)
        assert message not in there.received
        kept.set()
        await there.until(lambda: message in there.received)
        assert inbox.texts == ["hold on to this"]
        # What waited behind the receipt goes out, too.
        assert await adapter.send(a_delivery(inbox.arrivals[0].place.address, "thank you"))
    finally:
        life.cancel()
        await asyncio.wait([life])


async def test_killed_between_the_call_and_its_record_it_comes_again_and_says_so(there: Phones, tmp_path: Path) -> None:
    killed = KilledAt(Point.SEND_CALLED, 1)
    async with running(tmp_path, there, EchoAgent(), probe=killed):
        await there.says("only once")
        await killed.dead.wait()
    async with running(tmp_path, there, EchoAgent()):
        await there.until(lambda: len(there.texts) == 2)
        assert await answer(there, "and now?") == "and now?"
    assert [text for _, text in there.texts] == ["only once", f"{MAYBE}only once", "and now?"]


async def test_a_bridge_that_dies_is_started_again(there: Phones, tmp_path: Path) -> None:
    async with running(tmp_path, there, EchoAgent()) as gateway:
        assert await answer(there, "before") == "before"
        [adapter] = gateway.adapters
        assert isinstance(adapter, WhatsAppByPhone)
        line = adapter._line
        assert line is not None
        line._says.close()  # nobody talks to it any more, and so it ends
        await there.until(lambda: adapter._line not in (line, None))
        await there.says("after")
        # The bridge may have ended before it could tell that the first answer had arrived: then that comes again.
        await there.until(lambda: there.texts[-1][1] == "after")


async def test_a_device_is_added_with_the_terms_said_first(there: Phones, tmp_path: Path) -> None:
    road, *_ = WhatsAppAccount.questions()
    assert road.asks.startswith(TERMS)
    assert "it breaks WhatsApp's terms" in TERMS
    assert {question.when for question in WhatsAppAccount.questions()} == {
        ("", ""),
        ("road", "cloud"),
        ("road", "phone"),
    }
    shown: list[str] = []
    answers = {"road": "phone", "device": str(tmp_path / "device"), "api": there.url}
    told = await WhatsAppAccount.scanned(answers, shown.append)
    added = await WhatsAppAccount.added(told)
    assert not shown, "it is linked already"
    assert added.says.startswith("The device is linked to 15550000000.")
    assert added.keys == {"device": str(tmp_path / "device"), "api": there.url}
    assert "Write to the linked account" in await WhatsAppAccount(device="x").greet("phone", ANN)
    assert await WhatsAppAccount.scanned({"road": "cloud"}, shown.append) == {"road": "cloud"}
    with pytest.raises(Invalid, match="road"):
        await WhatsAppAccount.added({"road": "street"})


async def test_a_phone_scans_a_code_and_the_device_speaks_for_its_account(tmp_path: Path) -> None:
    async with phones(tmp_path) as there, pairing(there) as whatsapp:
        shown: asyncio.Queue[str] = asyncio.Queue()
        answers = {"road": "phone", "device": str(tmp_path / "device"), "api": whatsapp.url}
        scanned = asyncio.create_task(WhatsAppAccount.scanned(answers, shown.put_nowait))
        async with asyncio.timeout(60):
            code = await shown.get()
            assert await whatsapp.scan(code.replace("code-1", "code-2")) == {"refused": "nobody was shown this code"}
            assert await whatsapp.scan(code) == {"linked": "15550000000:1@s.whatsapp.net"}
            assert await scanned == answers
        assert shown.empty()
        async with running(tmp_path, there, EchoAgent()):
            assert await answer(there, "hello") == "hello"


MESSAGE = {"event": "message", "n": 1, "id": "3A01", "people": ["4915100000501@s.whatsapp.net", "77@lid"], "at": 1.0}


async def test_what_the_bridge_tells_is_read(tmp_path: Path) -> None:
    adapter, inbox = WhatsAppByPhone("phone", tmp_path, Shelf()), Inbox()
    adapter._me = ("15550000000@s.whatsapp.net", "99@lid")

    async def hears(**fields: Any) -> Any:
        count = len(inbox.arrivals)
        await adapter.take({**MESSAGE, "id": f"3A{count}", **fields}, inbox.accept)
        return inbox.arrivals[-1]

    private = await hears(text="hello", name="Ann")
    assert (private.place.address.chat, private.place.kind, private.chat_aliases) == (ANN, Kind.DM, ("77@lid",))
    assert (private.speaker.identity.user, private.speaker.aliases) == (ANN, ("77@lid",))
    group = await hears(group="1203@g.us", text="@99 hello", mentions=["99@lid"], quotes="3EB0")
    assert (group.place.address.chat, group.place.kind, group.chat_aliases) == ("1203@g.us", Kind.GROUP, ())
    assert (group.mentions_agent, group.quotes) == (True, "3EB0")
    assert (await hears(text="better", edits="3A0")).edits == "3A0"
    assert (await hears(deletes="3A0")).deletes == "3A0"
    passed_on = await hears(text="/stop", forwarded=True)
    assert (passed_on.parts, passed_on.cites) == ((), (Citation("/stop", kind=Citing.FORWARD),))
    lost = await hears(file={"kind": "image", "media": "image/jpeg", "size": 21 * 1024 * 1024})
    assert lost.remarks == ("image.jpg wasn't taken in. It is larger than 20 MB.",)
    await adapter.take({**MESSAGE, "people": []}, inbox.accept)
    await adapter.take({"event": "message"}, inbox.accept)
    assert len(inbox.letters) == 2
    with pytest.raises(SendLater):
        await adapter.send(a_delivery(private.place.address, "not connected"))


async def test_a_device_that_is_linked_no_more_says_so(tmp_path: Path) -> None:
    adapter, given = WhatsAppByPhone("phone", tmp_path, Shelf()), Given(Inbox().accept)
    for told in ({"event": "qr", "code": "2@x"}, {"event": "closed", "why": "logged out", "final": True}):
        with pytest.raises(Disconnected, match="links it again") as error:
            await adapter._heed(told, None, given)  # type: ignore[arg-type]  # no line is needed for it
        assert str(error.value) == LINK_AGAIN
    with pytest.raises(Disconnected, match="broke: Stream Errored"):
        await adapter._heed({"event": "closed", "why": "Stream Errored", "final": False}, None, given)  # type: ignore[arg-type]
