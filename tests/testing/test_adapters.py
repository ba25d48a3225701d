"""The fake adapters: what each persona can do and can't, and how an update becomes an arrival."""

import asyncio

import pytest

from segue.core.contracts.adapters import (
    Accept,
    Connection,
    Cursor,
    EditsMessages,
    OpensThreads,
    Pulls,
    ReadsBack,
    ShowsTyping,
    TakesWebhooks,
)
from segue.core.lanes import Identity, Kind, Place
from segue.core.messages import Sending, Text
from segue.errors import StoreError
from segue.testing import wire
from segue.testing.chats import To
from segue.testing.harness import pulling
from segue.testing.inbox import Inbox
from segue.testing.personas import (
    PERSONAS,
    Discord,
    Feishu,
    Matrix,
    Persona,
    Signal,
    SignalAdapter,
    Slack,
    Telegram,
    WhatsApp,
)

ABILITIES = (Pulls, TakesWebhooks, OpensThreads, EditsMessages, ShowsTyping, ReadsBack)


@pytest.mark.parametrize(
    ("persona", "abilities", "sending", "connection"),
    [
        (WhatsApp, {TakesWebhooks, ShowsTyping}, Sending.BLIND, Connection.ANY),
        (Signal, {Pulls, ShowsTyping}, Sending.BLIND, Connection.ONE),
        (Slack, {Pulls, OpensThreads, EditsMessages, ReadsBack}, Sending.READ_BACK, Connection.ANY),
        (Discord, {Pulls, OpensThreads, EditsMessages, ShowsTyping}, Sending.KEYED, Connection.ONE),
        (Telegram, {Pulls, OpensThreads, EditsMessages, ShowsTyping}, Sending.EDIT, Connection.ONE),
        (Matrix, {Pulls, OpensThreads, EditsMessages, ShowsTyping}, Sending.KEYED, Connection.ONE),
        (Feishu, {TakesWebhooks, OpensThreads, EditsMessages}, Sending.KEYED, Connection.ANY),
    ],
)
def test_a_persona_can_do_what_its_platform_can_and_nothing_else(
    persona: type[Persona], abilities: set[type], sending: Sending, connection: Connection
) -> None:
    adapter = persona("alpha").adapter()
    assert {ability for ability in ABILITIES if isinstance(adapter, ability)} == abilities
    assert (adapter.sending, adapter.connection) == (sending, connection)
    assert (adapter.platform, adapter.account) == (persona.name, "alpha")
    assert adapter.longest == persona.longest


async def test_an_arrival_has_all_that_the_platform_told() -> None:
    signal = Signal()
    ann, group = signal.person("Ann"), signal.group("the club")
    group.topic = "Tea"
    asked = ann.says("tea?", group)
    ann.says("today?", group, quoting=asked, to=To.AGENT)
    update = wire.decode(signal.told[-1])
    arrival = await signal.adapter().arrival(update)
    assert arrival.place == Place(group.address, Kind.GROUP, "the club", "Tea")
    assert arrival.speaker.identity == Identity("signal", "main", ann.ids[0]) == ann.identity
    assert (arrival.speaker.name, arrival.speaker.aliases) == ("Ann", ann.ids[1:])
    assert arrival.chat_aliases == group.ids[1:] != ()
    assert arrival.parts == (Text("today?"),)
    assert (arrival.quotes, arrival.edits, arrival.mentions_agent) == (asked.id, "", True)
    assert (arrival.message, arrival.seen_as) == (update.message, (update.event,))
    assert arrival.at == update.at


@pytest.mark.parametrize("persona", PERSONAS)
async def test_what_was_accepted_is_acknowledged(persona: type[Persona]) -> None:
    platform, inbox = persona(), Inbox()
    ann, adapter = platform.person("Ann"), platform.adapter()
    dm = platform.dm(ann)
    ann.says("hello", dm)
    platform.feed.put(b"garbage", wire.proof(platform.secret, b"garbage"))
    assert platform.feed.unacknowledged == 2
    if isinstance(adapter, Pulls):
        async with pulling(adapter, inbox.accept):
            await platform.settles()
    elif isinstance(adapter, TakesWebhooks):
        async with platform.calling(adapter.webhook(inbox.accept)):
            await platform.settles()
    assert inbox.texts == ["hello"]
    assert [(letter.raw, letter.account) for letter in inbox.letters] == [("garbage", "main")]


async def test_an_adapter_that_breaks_in_a_new_way_is_told() -> None:
    class Broken:
        async def arrivals(self, accept: Accept, _cursor: Cursor) -> None:
            raise ZeroDivisionError

    async def run() -> None:
        async with pulling(Broken(), Inbox().accept):
            await asyncio.sleep(0)

    with pytest.raises(ZeroDivisionError):
        await run()


async def test_an_adapter_whose_line_breaks_is_connected_again() -> None:
    class Breaking(SignalAdapter):
        lines = iter([ConnectionResetError(), StoreError("no room"), TimeoutError()])

        async def arrivals(self, accept: Accept, _cursor: Cursor) -> None:
            for error in self.lines:
                raise error
            await super().arrivals(accept, _cursor)

    signal, inbox = Signal(), Inbox()
    ann = signal.person("Ann")
    ann.says("hello", signal.dm(ann))
    async with pulling(Breaking(signal), inbox.accept):
        await inbox.gets("hello")
