"""The fake platform: what people see, what the account is told, and how it goes wrong."""

import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

import msgspec
import pytest

from segue.core.lanes import Address, Kind
from segue.core.messages import Delivery
from segue.errors import SendLater, SendNever, SendUnsure
from segue.testing import waits, wire
from segue.testing.adapters import FakeAdapter
from segue.testing.chats import Chat, Someone, To
from segue.testing.faults import ApiError, Call, Fault, RateLimit
from segue.testing.personas import PERSONAS, Discord, Feishu, Matrix, Persona, Signal, Slack, Telegram, WhatsApp
from segue.testing.waits import HandClock, NeverCame
from segue.testing.wire import Parcel

T = TypeVar("T")


def deliver(chat: Chat | Address, text: str = "hello", key: str = "k", doubtful: int = 0) -> Delivery:
    address = chat if isinstance(chat, Address) else chat.address
    return Delivery("1", address, "s", 1, text, key, doubtful=doubtful)


def updates(platform: Persona) -> list[wire.Update]:
    return [wire.decode(body) for body in platform.told]


async def soon(coming: asyncio.Future[T]) -> T:
    """What must come now, without waiting for ever if it doesn't."""
    async with asyncio.timeout(waits.PATIENCE):
        return await coming


@pytest.fixture
def slack() -> Slack:
    return Slack()


@pytest.fixture
def ann(slack: Slack) -> Someone:
    return slack.person("Ann")


# What people see


async def test_a_chat_shows_what_was_said_in_it(slack: Slack, ann: Someone) -> None:
    channel, dm = slack.group(), slack.dm(ann)
    ann.says("hello", channel)
    await slack.adapter().send(deliver(channel, "hi Ann"))
    ann.says("a secret", dm)
    assert [(message.by, message.text) for message in channel.messages] == [("Ann", "hello"), ("", "hi Ann")]
    assert channel.replies == ["hi Ann"]
    assert dm.replies == []
    assert slack.dm(ann) is dm, "a person has one private chat"


async def test_a_reader_waits_for_what_comes(slack: Slack, ann: Someone) -> None:
    dm, adapter = slack.dm(ann), slack.adapter()
    reading = asyncio.create_task(dm.reads("final"))
    some = asyncio.create_task(dm.reads_some(2))
    message = await adapter.send(deliver(dm, "draft", "k1"))
    await adapter.edit(deliver(dm, "final", "k1").with_message(message))
    assert (await reading).id == message
    await adapter.send(deliver(dm, "more", "k2"))
    assert await some == ["final", "more"]


async def test_a_reader_is_told_what_there_was_instead(slack: Slack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "PATIENCE", 0.01)
    channel = slack.group()
    await slack.adapter().send(deliver(channel, "something else"))
    with pytest.raises(NeverCame, match=r"never read 'hello'; it has \['something else'\]"):
        await channel.reads("hello")
    with pytest.raises(NeverCame, match="never saw a thread"):
        await channel.sees_thread()


async def test_threads_are_seen_by_those_who_wait_for_them(slack: Slack) -> None:
    channel = slack.group()
    seeing = asyncio.create_task(channel.sees_thread())
    opened = await slack.adapter().open_thread(channel.address, "Plans", "k")
    thread = await seeing
    assert (thread.address, thread.title) == (opened, "Plans")
    assert [thread.address for thread in channel.threads] == [opened]
    assert slack.group().threads == []
    assert slack.at(opened).address == opened


@pytest.mark.parametrize("persona", [Slack, Telegram, Discord, Matrix, Feishu])
def test_people_open_threads_too(persona: type[Slack | Telegram | Discord | Matrix | Feishu]) -> None:
    platform = persona()
    ann, group = platform.person("Ann"), platform.group()
    thread = ann.opens_thread("Plans", group)
    ann.says("to the sea", thread)
    assert [message.text for message in thread.messages] == ["to the sea"]
    assert updates(platform)[-1].thread == thread.address.thread
    assert platform.at(thread.address).messages == thread.messages


def test_flat_chats_have_no_threads() -> None:
    signal = Signal()
    with pytest.raises(ApiError):
        signal.person("Ann").opens_thread("Plans", signal.group())


# What the account is told


async def test_a_connection_tells_everything_unacknowledged_in_order(slack: Slack, ann: Someone) -> None:
    dm = slack.dm(ann)
    for n in range(3):
        ann.says(str(n), dm)
    first = [parcel async for parcel in some(slack.feed.parcels(), 3)]
    slack.feed.acknowledge(first[1])
    assert slack.feed.unacknowledged == 2
    again = [wire.decode(parcel.body).text async for parcel in some(slack.feed.parcels(), 2)]
    assert again == ["0", "2"]


async def some(parcels: AsyncIterator[Parcel], count: int) -> AsyncIterator[Parcel]:
    for _ in range(count):
        yield await anext(parcels)


async def test_settling_means_that_everything_was_acknowledged(slack: Slack, ann: Someone) -> None:
    ann.says("hello", slack.dm(ann))
    settling = asyncio.create_task(slack.settles())
    await asyncio.sleep(0)
    assert not settling.done()
    [parcel] = [parcel async for parcel in some(slack.feed.parcels(), 1)]
    slack.feed.acknowledge(parcel)
    await settling


def test_a_mention_is_told_twice_under_two_events(slack: Slack, ann: Someone) -> None:
    ann.says("help us", slack.group(), to=To.AGENT)
    one, two = updates(slack)
    assert one.mentions
    assert one.message == two.message
    assert one.event != two.event


def test_to_answer_a_message_on_slack_is_to_write_in_its_thread(slack: Slack, ann: Someone) -> None:
    channel = slack.group()
    root = ann.says("where shall we go?", channel)
    reply = ann.says("to the sea", channel, quoting=root)
    more = ann.says("or the hills", channel, quoting=reply)
    assert [reply.thread, more.thread] == [root.id, root.id]
    assert updates(slack)[-1].quotes == ""


async def test_the_account_is_told_its_own_words(slack: Slack) -> None:
    await slack.adapter().send(deliver(slack.group(), "me"))
    [update] = updates(slack)
    assert update.by.agent


def test_ids_that_a_person_hides_are_not_told() -> None:
    whatsapp = WhatsApp()
    ann = whatsapp.person("Ann")
    dm = whatsapp.dm(ann)
    ann.says("one", dm)
    ann.shows(ann.ids[1])
    ann.says("two", dm)
    both, number = updates(whatsapp)
    assert (both.by.id, both.by.aliases) == (ann.ids[0], (ann.ids[1],))
    assert (both.chat, both.chat_aliases) == (ann.ids[0], (ann.ids[1],))
    assert (number.by.id, number.by.aliases) == (ann.ids[1], ())
    assert (number.chat, number.chat_aliases) == (ann.ids[1], ())
    assert whatsapp.at(whatsapp.address(ann.ids[1])) is dm


def test_telegram_counts_in_each_chat() -> None:
    telegram = Telegram()
    ann = telegram.person("Ann")
    group, dm = telegram.group(), telegram.dm(ann)
    assert [ann.says("x", chat).id for chat in (group, group, dm)] == ["1", "2", "1"]
    assert group.id.startswith("-")
    assert dm.id == ann.ids[0]
    assert telegram.address(group.id).thread == "", "the General topic has no id"


def test_discord_tells_a_thread_as_the_chat() -> None:
    discord = Discord()
    ann, channel = discord.person("Ann"), discord.group()
    ann.says("to the sea", ann.opens_thread("Plans", channel))
    [update] = updates(discord)
    assert update.chat == update.thread != channel.id


def test_discord_has_no_threads_in_private() -> None:
    discord = Discord()
    ann = discord.person("Ann")
    with pytest.raises(ApiError):
        ann.opens_thread("Plans", discord.dm(ann))


def test_a_matrix_edit_names_nothing_but_what_it_edits() -> None:
    matrix = Matrix()
    ann = matrix.person("Ann")
    thread = ann.opens_thread("Plans", matrix.group())
    message = ann.says("to the see", thread)
    ann.edits(message, "to the sea")
    edit = updates(matrix)[-1]
    assert (edit.edits, edit.thread) == (message.id, "")
    assert edit.message != message.id


async def test_a_matrix_edit_of_an_unknown_event_stops_nothing() -> None:
    matrix = Matrix()
    ann = matrix.person("Ann")
    ann.edits(ann.says("hello", matrix.group()), "hello!")
    lost = updates(matrix)[-1]
    arrival = await matrix.adapter().arrival(msgspec.structs.replace(lost, edits="$unknown"))
    assert arrival.place.address.thread == ""


@pytest.mark.parametrize("persona", PERSONAS)
def test_ids_never_come_twice(persona: type[Persona]) -> None:
    platform = persona()
    people = [platform.person(name) for name in ("Ann", "Ben")]
    chats = [platform.dm(who) for who in people] + [platform.group() for _ in range(2)]
    messages = [who.says("x", chat) for chat in chats for who in people]
    ids = [id for who in people for id in who.ids]
    assert len(set(ids)) == len(ids)
    assert len({id for chat in chats for id in chat.ids}) == sum(len(chat.ids) for chat in chats)
    assert len({(message.chat, message.id) for message in messages}) == len(messages)


# How it goes wrong


@pytest.mark.parametrize(
    ("fault", "error", "taken"),
    [
        (RateLimit(3.5), SendLater, 0),
        (Fault.SERVER_ERROR, SendLater, 0),
        (Fault.UNREACHABLE, SendLater, 0),
        (Fault.REFUSES, SendNever, 0),
        (Fault.TAKES_AND_BREAKS, SendUnsure, 1),
    ],
)
async def test_a_call_goes_wrong_as_planned(
    slack: Slack, fault: Fault | RateLimit, error: type[Exception], taken: int
) -> None:
    channel, adapter = slack.group(), slack.adapter()
    slack.misbehaves(fault)
    with pytest.raises(error) as raised:
        await adapter.send(deliver(channel, key="k1"))
    assert len(channel.replies) == taken
    if isinstance(raised.value, SendLater):
        assert raised.value.seconds == (3.5 if isinstance(fault, RateLimit) else None)
    await adapter.send(deliver(channel, key="k2"))
    assert len(channel.replies) == taken + 1, "only the next call goes wrong"
    assert slack.faults.calls[Call.SEND] == 2


@pytest.mark.parametrize(("fault", "taken"), [(Fault.HANGS, 0), (Fault.TAKES_AND_HANGS, 1)])
async def test_a_call_hangs_until_the_platform_recovers(slack: Slack, fault: Fault, taken: int) -> None:
    channel = slack.group()
    slack.misbehaves(fault)
    sending = asyncio.create_task(slack.adapter().send(deliver(channel)))
    await slack.called(Call.SEND)
    assert len(channel.replies) == taken
    assert not sending.done()
    slack.recovers()
    with pytest.raises(SendUnsure):
        await soon(sending)


async def test_only_the_calls_that_were_meant_go_wrong(slack: Slack) -> None:
    channel, adapter = slack.group(), slack.adapter()
    slack.misbehaves(Fault.REFUSES, on=Call.OPEN_THREAD, times=None)
    await adapter.send(deliver(channel))
    for _ in range(3):
        with pytest.raises(SendNever):
            await adapter.open_thread(channel.address, "Plans", "k")
    slack.recovers()
    await adapter.open_thread(channel.address, "Plans", "k")


async def test_a_platform_that_is_down_takes_and_tells_nothing(slack: Slack, ann: Someone) -> None:
    channel = slack.group()
    slack.goes_down()
    ann.says("hello?", channel)
    telling = asyncio.ensure_future(anext(slack.feed.parcels()))
    with pytest.raises(SendLater):
        await slack.adapter().send(deliver(channel))
    assert not telling.done()
    slack.recovers()
    assert wire.decode((await soon(telling)).body).text == "hello?"
    await slack.adapter().send(deliver(channel))
    assert channel.replies == ["hello"]


@pytest.mark.parametrize("persona", [Discord, Feishu])
async def test_a_key_that_the_platform_forgot_is_looked_up(persona: type[Discord | Feishu]) -> None:
    clock = HandClock()
    platform = persona(clock=clock)
    group, adapter = platform.group(), platform.adapter()
    message = await adapter.send(deliver(group))
    clock.passes(platform.keys_last - 1)
    assert await adapter.send(deliver(group)) == message
    clock.passes(2)
    assert await adapter.send(deliver(group, doubtful=1)) == message
    assert await adapter.send(deliver(group)) != message, "the key was forgotten, and nobody was in doubt"


async def test_telegram_remembers_no_key() -> None:
    telegram = Telegram()
    group = telegram.group()
    one, two = telegram.adapter(), telegram.adapter()
    assert await one.send(deliver(group)) != await one.send(deliver(group))
    opened = await one.open_thread(group.address, "Plans", "k")
    assert await one.open_thread(group.address, "Plans", "k") == opened
    assert await two.open_thread(group.address, "Plans", "k") != opened, "after a restart nobody knows"


async def test_slack_cuts_what_is_too_long_and_others_refuse_it(slack: Slack) -> None:
    channel = slack.group()
    await slack.adapter().send(deliver(channel, "x" * 40_001))
    assert len(channel.replies[0]) == 40_000
    telegram = Telegram()
    with pytest.raises(SendNever):
        await telegram.adapter().send(deliver(telegram.group(), "🚀" * 2049))


@pytest.mark.parametrize("persona", [Matrix, Feishu])
async def test_where_bytes_count_they_are_counted(persona: type[Matrix | Feishu]) -> None:
    platform = persona()
    group, adapter = platform.group(), platform.adapter()
    half = platform.longest // 2
    await adapter.send(deliver(group, "ü" * half))
    with pytest.raises(SendNever):
        await adapter.send(deliver(group, "ü" * half + "x", "k2"))


@pytest.mark.parametrize("persona", PERSONAS)
async def test_nobody_reads_a_thread_that_is_not_there(persona: type[Persona]) -> None:
    platform = persona()
    with pytest.raises(SendNever):
        await platform.adapter().send(deliver(platform.address(platform.group().id, "404")))


@pytest.mark.parametrize("persona", PERSONAS)
async def test_nothing_is_said_with_an_empty_text(persona: type[Persona]) -> None:
    platform = persona()
    adapter: FakeAdapter = platform.adapter()
    with pytest.raises(SendNever):
        await adapter.send(deliver(platform.group(), " \n"))


async def test_two_accounts_are_two_platforms() -> None:
    one, two = Slack("one"), Slack("two")
    assert one.group().address != two.group().address
    assert one.secret != two.secret


def test_a_channel_is_a_group_of_another_kind(slack: Slack, ann: Someone) -> None:
    channel = slack.group("news", Kind.CHANNEL)
    channel.topic = "What is new"
    ann.says("hello", channel)
    [update] = updates(slack)
    assert (update.kind, update.chat_name, update.topic) == (Kind.CHANNEL, "news", "What is new")
    assert channel.place.kind is Kind.CHANNEL
