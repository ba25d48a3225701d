"""The fake adapters: what each persona can do and can't, and how an update becomes an arrival."""

import asyncio

import pytest

from segue.core.contracts.adapters import (
    Connection,
    EditsMessages,
    Intake,
    OpensThreads,
    ReadsBack,
    ShowsTyping,
    TakesWebhooks,
)
from segue.core.lanes import Identity, Kind, Place
from segue.core.messages import Sending, Text
from segue.errors import StoreError
from segue.testing import wire
from segue.testing.chats import To
from segue.testing.harness import Given, living
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

ABILITIES = (TakesWebhooks, OpensThreads, EditsMessages, ShowsTyping, ReadsBack)


@pytest.mark.parametrize(
    ("persona", "abilities", "sending", "connection"),
    [
        (WhatsApp, {TakesWebhooks, ShowsTyping}, Sending.BLIND, Connection.ANY),
        (Signal, {ShowsTyping}, Sending.BLIND, Connection.ONE),
        (Slack, {OpensThreads, EditsMessages, ReadsBack}, Sending.READ_BACK, Connection.ANY),
        (Discord, {OpensThreads, EditsMessages, ShowsTyping}, Sending.KEYED, Connection.ONE),
        (Telegram, {OpensThreads, EditsMessages, ShowsTyping}, Sending.EDIT, Connection.ONE),
        (Matrix, {OpensThreads, EditsMessages, ShowsTyping}, Sending.KEYED, Connection.ONE),
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
    longest = "x" * persona.longest
    assert (adapter.fits(longest), adapter.fits(f"{longest}x")) == (True, False)


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
    if isinstance(adapter, TakesWebhooks):
        async with platform.calling(adapter.webhook(inbox.accept)):
            await platform.settles()
    else:
        async with living(adapter, Given(inbox.accept)):
            await platform.settles()
    assert inbox.texts == ["hello"]
    assert [(letter.raw, letter.account) for letter in inbox.letters] == [("garbage", "main")]


async def test_an_adapter_that_breaks_in_a_new_way_is_told() -> None:
    class Broken(SignalAdapter):
        async def run(self, intake: Intake) -> None:
            raise ZeroDivisionError

    async def run() -> None:
        async with living(Broken(Signal()), Given(Inbox().accept)):
            await asyncio.sleep(0)

    with pytest.raises(ZeroDivisionError):
        await run()


async def test_an_adapter_whose_line_breaks_is_connected_again() -> None:
    class Breaking(SignalAdapter):
        lines = iter([ConnectionResetError(), StoreError("no room"), TimeoutError()])

        async def run(self, intake: Intake) -> None:
            for error in self.lines:
                raise error
            await super().run(intake)

    signal, inbox = Signal(), Inbox()
    ann = signal.person("Ann")
    ann.says("hello", signal.dm(ann))
    async with living(Breaking(signal), Given(inbox.accept)):
        await inbox.gets("hello")
