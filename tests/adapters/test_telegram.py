"""The Telegram adapter, with updates and answers as the Bot API's documentation describes them."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from segue.adapters.shared.account import Account
from segue.adapters.shared.decoding import decode
from segue.adapters.shared.markup import utf16
from segue.adapters.shared.rates import Rate
from segue.adapters.shared.webhooks import LARGEST
from segue.adapters.telegram import Telegram, TelegramAccount, TelegramByWebhook
from segue.adapters.telegram import adapter as adapter_file
from segue.adapters.telegram.adapter import HEADER, secret_of
from segue.adapters.telegram.api import Pace
from segue.adapters.telegram.incoming import read
from segue.adapters.telegram.markup import render, rich, visible
from segue.adapters.telegram.outgoing import fits
from segue.adapters.telegram.updates import Peer, Update
from segue.changes.exchange import letters
from segue.core.commands import SPECS, Command, ShownTo, parse
from segue.core.contracts.adapters import Accepted, Arrived, HasStartLinks
from segue.core.lanes import Address, Kind
from segue.core.messages import (
    PLACEHOLDER,
    Arrival,
    Aside,
    Citation,
    Citing,
    Delivery,
    File,
    Pressed,
    Telling,
    Text,
    plain_text,
)
from segue.core.settings import AccountSettings
from segue.core.values import Secret
from segue.errors import Disconnected, Invalid, MessageGone, SendLater, SendNever, SendUnsure, StoreError, StoreFull
from segue.testing import HandClock, Inbox, Shelf, post
from segue.testing.agents import EchoAgent
from segue.testing.harness import Given, living
from tests.in_process import gateway_on
from tests.runtime.telemetry.test_metrics import figure
from tests.servers.crabline import BOT, TOKEN, Between, refusal, telegram

ME = Peer(424242, username=BOT)
ANN = {"id": 501, "is_bot": False, "first_name": "Ann", "last_name": "Lee", "username": "ann"}
SELF = {"id": ME.id, "is_bot": True, "first_name": "Segue", "username": BOT}
DM = {"id": 501, "type": "private", "first_name": "Ann"}
GROUP = {"id": -1001234567890, "type": "supergroup", "title": "Kitchen"}
FORUM = {**GROUP, "is_forum": True}
BRISK = Pace(*[Rate(1000, 0.001)] * 5)
HERE = Address("telegram", "bot", "", "501")
THERE = Address("telegram", "bot", "", "-1001234567890")


def message(**more: Any) -> dict[str, Any]:
    said = {"message_id": 7, "date": 1_700_000_000, "chat": DM, "from": ANN, "text": "hello"}
    return {key: value for key, value in {**said, **more}.items() if value is not None}


def update(kind: str = "message", **more: Any) -> dict[str, Any]:
    return {"update_id": 900, kind: message(**more)}


def heard(raw: dict[str, Any], me: Peer = ME) -> Arrival | None:
    return read(decode(raw, Update, "Telegram"), raw, Account("telegram", "bot"), me, 5.0)


def arrival(raw: dict[str, Any], me: Peer = ME) -> Arrival:
    found = heard(raw, me)
    assert found is not None
    return found


def a_delivery(text: str, at: Address = HERE, **more: Any) -> Delivery:
    return Delivery(id="d", address=at, session="s", entry=1, text=text, key="k", **more)


# What comes in


def test_a_private_message() -> None:
    said = arrival(update())
    assert (said.place.address, said.place.kind) == (HERE, Kind.DM)
    assert (said.speaker.identity.user, said.speaker.name) == ("501", "Ann Lee")
    assert (said.message, plain_text(said.parts), said.seen_as) == ("7", "hello", ("update/900",))
    assert (said.quotes, said.edits, said.mentions_agent) == ("", "", False)


def test_an_edit_names_what_it_edits_and_has_keys_of_its_own() -> None:
    first, edited = arrival(update()), arrival({**update("edited_message", text="hullo"), "update_id": 901})
    assert (edited.edits, plain_text(edited.parts)) == ("7", "hullo")
    assert not set(first.keys) & set(edited.keys)


async def test_an_edit_that_changes_no_word_is_none(there: tuple[Between, Telegram]) -> None:
    """Telegram tells of a message as edited when somebody reacts to it, for instance."""
    (_, adapter), inbox, updates = there, Inbox(), itertools.count(900)

    async def comes(kind: str, **more: Any) -> list[str]:
        await adapter.take({**update(kind, **more), "update_id": next(updates)}, inbox.accept)
        return inbox.texts

    assert await comes("message") == ["hello"]
    assert await comes("edited_message") == ["hello"]
    inbox.refusals = 1
    with pytest.raises(StoreError):
        await comes("edited_message", text="hullo")
    assert await comes("edited_message", text="hullo") == ["hello", "hullo"]
    assert await comes("edited_message", text="hullo") == ["hello", "hullo"]
    assert await comes("edited_message") == ["hello", "hullo", "hello"]
    assert await comes("edited_message", chat=GROUP) == ["hello", "hullo", "hello", "hello"], "it is another message"
    assert await comes("edited_message", message_id=8) == ["hello", "hullo", *["hello"] * 3], "nobody knows what it was"


def test_a_reply_to_the_agent_quotes_and_mentions_it() -> None:
    reply = message(message_id=6, **{"from": SELF, "text": "Shall I?"})
    said = arrival(update(chat=GROUP, reply_to_message=reply, text="yes"))
    assert (said.quotes, said.mentions_agent, plain_text(said.parts)) == ("6", True, "yes")


def test_what_is_picked_out_of_a_message_goes_with_the_answer() -> None:
    reply = message(message_id=6, **{"from": SELF, "text": "Walk.\nThen cake."})
    said = arrival(update(reply_to_message=reply, quote={"text": "Then cake.", "position": 6}, text="which?"))
    assert said.parts == (Text("which?"),)
    assert said.cites == (Citation("Then cake.", str(ME.id), "Segue"),)
    assert said.quotes == "6"


def test_what_somebody_else_said_goes_with_a_question_about_it() -> None:
    reply = message(message_id=6, **{"from": {**ANN, "id": 502}, "text": "It rains\nall day"})
    entity = {"type": "mention", "offset": 0, "length": len(BOT) + 1}
    said = arrival(update(chat=GROUP, reply_to_message=reply, text=f"@{BOT} really?", entities=[entity]))
    assert said.parts == (Text(f"@{BOT} really?"),)
    assert [(cited.text, cited.author) for cited in said.cites] == [("It rains\nall day", "502")]
    assert said.mentions_agent


def test_a_command_that_answers_a_message_stays_a_command() -> None:
    reply = message(message_id=6, **{"from": {**ANN, "id": 502}, "text": "It rains"})
    said = arrival(update(reply_to_message=reply, text="/rewind"))
    assert parse(plain_text(said.parts)) == Command("rewind")
    assert said.quotes == "6"


@pytest.mark.parametrize("text", ["/link CDFG-HJ34", f"/new@{BOT}", "/new@other_bot", "It rains\n" + "all day" * 200])
def test_what_is_forwarded_is_cited_and_no_command(text: str) -> None:
    origin = {"type": "hidden_user", "sender_user_name": "Ben", "date": 1_700_000_000}
    command = {"type": "bot_command", "offset": 0, "length": 5}
    said = arrival(update(chat=GROUP, text=text, forward_origin=origin, entities=[command]))
    assert (said.parts, said.cites) == ((), (Citation(text, "", "Ben", Citing.FORWARD),))
    assert not said.mentions_agent


@pytest.mark.parametrize(
    ("text", "entity", "meant"),
    [
        (f"🚀 @{BOT} go", {"type": "mention", "offset": 3, "length": len(BOT) + 1}, True),
        (f"@{BOT.upper()} go", {"type": "mention", "offset": 0, "length": len(BOT) + 1}, True),
        ("@other_bot go", {"type": "mention", "offset": 0, "length": 10}, False),
        ("Segue, go", {"type": "text_mention", "offset": 0, "length": 5, "user": SELF}, True),
        ("Ann, go", {"type": "text_mention", "offset": 0, "length": 3, "user": ANN}, False),
        ("/new", {"type": "bot_command", "offset": 0, "length": 4}, True),
        ("just words", {"type": "bold", "offset": 0, "length": 4}, False),
    ],
)
def test_who_is_meant_in_a_group(text: str, entity: dict[str, Any], meant: bool) -> None:  # noqa: FBT001
    assert arrival(update(chat=GROUP, text=text, entities=[entity])).mentions_agent is meant


def test_a_command_without_a_name_is_not_for_a_bot_that_is_shown_everything() -> None:
    all_seeing = Peer(ME.id, username=BOT, can_read_all_group_messages=True)
    for text, meant in (("/new", False), (f"/new@{BOT}", True)):
        raw = update(chat=GROUP, text=text, entities=[{"type": "bot_command", "offset": 0, "length": len(text)}])
        assert arrival(raw, all_seeing).mentions_agent is meant


def test_a_mention_after_a_command_names_the_bot_that_it_is_for() -> None:
    entities = [
        {"type": "bot_command", "offset": 0, "length": 4},
        {"type": "mention", "offset": 5, "length": len(BOT) + 1},
    ]
    raw = update(chat=GROUP, text=f"/new @{BOT}", entities=entities)
    all_seeing = Peer(ME.id, username=BOT, can_read_all_group_messages=True)
    assert arrival(raw, all_seeing).mentions_agent


async def test_a_command_without_a_name_is_not_for_an_admin_who_is_shown_everything(
    there: tuple[Between, Telegram],
) -> None:
    (between, adapter), inbox, updates = there, Inbox(), itertools.count(1000)
    ranks = {"status": "member"}
    # crabline's bots are shown everything everywhere.
    told = {"getMe": {**SELF, "can_read_all_group_messages": False}, "getChatMember": ranks}
    between.refuse = lambda method, _: JSONResponse({"ok": True, "result": told[method]}) if method in told else None

    async def says(text: str, chat: dict[str, Any] = GROUP, **more: Any) -> bool:
        n, command = next(updates), {"type": "bot_command", "offset": 0, "length": len(text)}
        raw = update(chat=chat, message_id=n, text=text, entities=[command] if text[0] == "/" else [], **more)
        await adapter.take({**raw, "update_id": n}, inbox.accept)
        return inbox.arrivals[-1].mentions_agent

    async def becomes(status: str) -> None:
        before, ranks["status"] = ranks["status"], status
        await adapter.take({**member(before, status), "update_id": next(updates)}, inbox.accept)

    def asked() -> int:
        return [method for method, _ in between.calls].count("getChatMember")

    assert [await says("hello"), await says("/new", DM), asked()] == [False, True, 0]
    assert [await says("/new"), await says("/status"), asked()] == [True, True, 1]
    await becomes("administrator")
    assert [await says("/new"), await says("/status"), asked()] == [False, False, 2]
    reply = {**message(chat=GROUP), "from": SELF}
    assert [await says(f"/new@{BOT}"), await says("/new", reply_to_message=reply)] == [True, True]
    await becomes("member")
    assert await says("/new")


def test_a_mention_in_a_caption_counts() -> None:
    entity = {"type": "mention", "offset": 0, "length": len(BOT) + 1}
    photo = [{"file_id": "small", "width": 1, "height": 1}, {"file_id": "large", "width": 9, "height": 9}]
    raw = update(chat=GROUP, text=None, caption=f"@{BOT} what is it?", caption_entities=[entity], photo=photo)
    assert arrival(raw).mentions_agent
    assert arrival(raw).parts[1:] == (File("photo.jpg", "image/jpeg", ""),)
    said = decode(raw, Update, "Telegram").message
    assert said is not None
    assert [file.file_id for file in said.attachments] == ["large"]


async def test_an_album_is_meant_whole_though_one_picture_alone_names_the_agent(
    there: tuple[Between, Telegram],
) -> None:
    (between, adapter), inbox = there, Inbox()
    between.files["p"] = b"a picture"
    named: dict[str, Any] = {
        "caption": f"@{BOT} these",
        "caption_entities": [{"type": "mention", "offset": 0, "length": len(BOT) + 1}],
    }
    pictures = [("1", named), ("1", {}), ("2", {}), ("1", {}), (None, {})]
    for n, (album, words) in enumerate(pictures):
        picture = update(chat=GROUP, text=None, message_id=n, photo=[{"file_id": "p"}], media_group_id=album, **words)
        await adapter.take({**picture, "update_id": n}, inbox.accept)
    assert [arrival.mentions_agent for arrival in inbox.arrivals] == [True, True, False, True, False]


def test_a_command_with_the_bots_name_is_a_command() -> None:
    entity = {"type": "bot_command", "offset": 0, "length": 5 + len(BOT)}
    said = arrival(update(chat=GROUP, text=f"/new@{BOT.title()} walk", entities=[entity]))
    assert parse(plain_text(said.parts)) == Command("new", "walk")
    assert said.mentions_agent


def test_a_command_for_another_bot_is_not_ours() -> None:
    assert heard(update(chat=GROUP, text="/new@other_bot")) is None


UNSEEN: dict[str, Any] = {"message_id": 0, "ephemeral_message_id": 5, "receiver_user": SELF, "chat": GROUP}
"""A message in a group that only its sender and the bot see, as Bot API 10.2 and 10.3 document it."""


def test_a_command_that_nobody_else_saw_is_meant_and_has_an_id_of_its_own() -> None:
    said = arrival(update(**UNSEEN, text="/status"))
    assert (said.message, said.mentions_agent, said.remarks) == ("ephemeral.5.900", True, ())
    later = arrival({**update(**UNSEEN, text="/status"), "update_id": 901})
    assert not set(said.keys) & set(later.keys), "Telegram uses the number again"


def test_words_that_nobody_else_saw_come_with_a_remark() -> None:
    ours = message(**UNSEEN, **{"from": SELF, "text": "It is well."})
    said = arrival(update(**UNSEEN, reply_to_message=ours, text="really?"))
    assert (said.quotes, plain_text(said.parts)) == ("ephemeral.501.5", "really?")
    assert "seen by everybody" in said.remarks[0]


def test_a_button_of_a_message_that_nobody_else_saw() -> None:
    shown = message(**UNSEEN, **{"from": SELF})
    pressed = {"id": "99", "from": ANN, "chat_instance": "1", "data": "/yes", "message": shown}
    assert arrival({"update_id": 900, "callback_query": pressed}).pressed == Pressed("ephemeral.501.5", "/yes")


def test_a_topic_is_told_by_its_flag() -> None:
    began = message(message_id=42, text=None, forum_topic_created={"name": "Plans", "icon_color": 1})
    said = arrival(update(chat=FORUM, message_thread_id=42, is_topic_message=True, reply_to_message=began))
    assert said.place.address.thread == "42"
    assert (said.quotes, said.mentions_agent, said.place.topic) == ("", False, "Plans")


@pytest.mark.parametrize("event", ["forum_topic_created", "forum_topic_edited"])
def test_what_a_topic_is_called_is_remembered_though_nobody_spoke(event: str) -> None:
    topic: dict[str, Any] = {"chat": FORUM, "message_thread_id": 42, "is_topic_message": True}
    named = arrival(update(**{"text": None, event: {"name": "Cake"}, **topic}))
    assert (named.place.address.thread, named.place.topic, named.parts) == ("42", "Cake", ())
    assert named.topic is Telling.NOW
    later = arrival(update(**topic))
    assert later.topic is Telling.ONCE, "it doesn't know what its topic is called by now"


def member(before: str, after: str, chat: dict[str, Any] = GROUP, **more: Any) -> dict[str, Any]:
    change = {"chat": chat, "from": ANN, "date": 1_700_000_000}
    change |= {"old_chat_member": {"user": SELF, "status": before}, "new_chat_member": {"user": SELF, "status": after}}
    return {"update_id": 900, "my_chat_member": {**change, **more}}


def test_whoever_brings_it_into_a_group_is_heard() -> None:
    brought = arrival(member("left", "member"))
    assert (brought.place.address, brought.place.kind, brought.place.name) == (THERE, Kind.GROUP, "Kitchen")
    assert (brought.speaker.identity.user, brought.parts, brought.brings_agent) == ("501", (), True)
    assert "update/900" in brought.keys


@pytest.mark.parametrize(
    "change",
    [
        member("member", "administrator"),
        member("member", "kicked"),
        member("restricted", "member", old_chat_member={"user": SELF, "status": "restricted", "is_member": True}),
        member("kicked", "member", DM),
        member("left", "administrator", {"id": -100, "type": "channel", "title": "News"}),
        member("left", "member", **{"from": {**SELF, "id": 7}}),
    ],
)
def test_other_changes_of_what_it_may_do_are_no_arrivals(change: dict[str, Any]) -> None:
    assert heard(change) is None


async def test_where_it_was_brought_to_and_removed_from_is_in_the_log(
    there: tuple[Between, Telegram], caplog: pytest.LogCaptureFixture
) -> None:
    inbox, news = Inbox(), {"id": -100, "type": "channel", "title": "News\nx"}
    for change in (member("left", "administrator", news), member("member", "kicked"), member("kicked", "member", DM)):
        await there[1].take(change, inbox.accept)
    assert [record.getMessage() for record in caplog.records] == [
        "telegram.bot was brought into the channel 'News\\nx' (-100) by 501",
        "telegram.bot was removed from the supergroup 'Kitchen' (-1001234567890) by 501",
    ]


async def test_telegram_is_asked_for_what_is_understood(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    polling = asyncio.create_task(adapter.run(Given(Inbox().accept)))
    await between.changes.until(
        lambda: "getUpdates" in [method for method, _ in between.calls] or None, lambda: "no poll"
    )
    polling.cancel()
    await asyncio.wait([polling])
    asked = next(json.loads(body["allowed_updates"]) for method, body in between.calls if method == "getUpdates")
    assert set(asked) == {field for field in Update.__struct_fields__ if field != "update_id"}


def test_the_general_topic_and_plain_replies_have_no_thread() -> None:
    assert arrival(update(chat=FORUM)).place.address == THERE
    reply = message(message_id=6, chat=FORUM)
    assert arrival(update(chat=FORUM, message_thread_id=6, reply_to_message=reply)).place.address == THERE
    assert arrival(update(chat=GROUP, message_thread_id=6, reply_to_message=reply)).quotes == "6"


def test_a_topic_in_a_private_chat_is_a_place_of_its_own() -> None:
    said = arrival(update(message_thread_id=9, is_topic_message=True))
    assert (said.place.address.thread, said.place.kind) == ("9", Kind.DM)


@pytest.mark.parametrize(
    "more",
    [
        {"from": SELF},
        {"from": {**SELF, "id": 7, "username": "other_bot"}},
        {"sender_chat": {"id": -100, "type": "channel", "title": "News"}, "is_automatic_forward": True},
        {"chat": {"id": -100, "type": "channel", "title": "News"}},
        {"text": None, "new_chat_members": [SELF]},
        {"text": None, "pinned_message": message()},
        {"text": None, "forum_topic_closed": {}},
        {"text": None, "forum_topic_edited": {"icon_custom_emoji_id": "5"}},
    ],
)
def test_bots_channels_and_what_nobody_wrote_are_no_arrivals(more: dict[str, Any]) -> None:
    assert heard(update(**{"chat": GROUP, **more})) is None


def test_whoever_writes_as_a_group_is_that_group() -> None:
    anonymous = {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}
    said = arrival({"update_id": 900, "message": message(chat=GROUP, sender_chat=GROUP, **{"from": anonymous})})
    assert (said.speaker.identity.user, said.speaker.name) == (str(GROUP["id"]), "Kitchen")


def test_a_button_says_its_command() -> None:
    pressed = {"id": "99", "from": ANN, "chat_instance": "x", "data": "/yes", "message": message(**{"from": SELF})}
    said = arrival({"update_id": 900, "callback_query": pressed})
    assert (said.pressed, said.message) == (Pressed(str(message()["message_id"]), "/yes"), "button.99")
    assert said.heard.parts == (Text("/yes"),)
    assert (said.speaker.identity.user, said.place.address) == ("501", HERE)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"sticker": {"file_id": "s", "emoji": "👍"}}, "👍"),
        ({"location": {"latitude": 1.5, "longitude": 2.5}}, "Location: 1.5, 2.5"),
        ({"contact": {"phone_number": "+49", "first_name": "Ben"}}, "Contact: Ben  +49"),
    ],
)
def test_what_has_no_words_is_put_into_some(more: dict[str, Any], words: str) -> None:
    assert plain_text(arrival(update(text=None, **more)).parts) == words


@pytest.mark.parametrize("kind", ["poll", "story", "game", "dice", "giveaway", "rich_message"])
async def test_what_is_not_understood_is_told(kind: str, there: tuple[Between, Telegram]) -> None:
    inbox = Inbox()
    await there[1].take({"update_id": 900, "message": message(text=None, **{kind: {"id": "1"}})}, inbox.accept)
    assert [letter.why.partition(":")[0] for letter in inbox.letters] == [kind]


async def test_polls_of_strangers_are_counted_and_nothing_of_them_is_kept(
    there: tuple[Between, Telegram], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Anybody may bring the bot into a group of their own and ask polls there."""
    theirs = {"id": -78, "type": "group", "title": "Ben's"}
    ben = {"id": 502, "is_bot": False, "first_name": "Ben"}
    accounts = {("telegram", "bot"): AccountSettings(allow=frozenset({str(ANN["id"])}))}
    async with gateway_on(tmp_path, EchoAgent(), accounts=accounts) as gateway:
        for n in range(3):
            poll = message(message_id=n + 10, text=None, chat=theirs, **{"from": ben}, poll={"question": "Tea?"})
            await there[1].take({"update_id": 900 + n, "message": poll}, gateway.accept)
        assert await gateway.store.driver.read(letters.newest, 10) == []
        assert not [record for record in caplog.records if record.levelname == "ERROR"]
        assert figure(gateway.metrics, "segue_files_left_total", platform="telegram", account="bot") == 3
        poll = message(message_id=20, text=None, poll={"question": "Coffee?"})
        await there[1].take({"update_id": 920, "message": poll}, gateway.accept)
        [letter] = await gateway.store.driver.read(letters.newest, 10)
    assert "Coffee?" in letter.raw


@pytest.mark.parametrize(
    "garbage",
    [None, 7, "x", [], {}, {"update_id": "900"}, {"update_id": 1, "message": []}, update(chat={"id": "501"})],
)
async def test_garbage_is_a_letter(garbage: Any, there: tuple[Between, Telegram]) -> None:
    inbox = Inbox()
    await there[1].take(garbage, inbox.accept)
    assert not inbox.arrivals
    [letter] = inbox.letters
    assert json.loads(letter.raw) == garbage


async def test_an_update_that_is_nested_too_deep_is_a_letter(there: tuple[Between, Telegram]) -> None:
    deep: dict[str, Any] = message()
    for _ in range(3000):
        deep = message(reply_to_message=deep)
    inbox = Inbox()
    await there[1].take({"update_id": 1, "message": deep}, inbox.accept)
    [letter] = inbox.letters
    assert letter.why.startswith("event: It is nested too deep")


async def test_a_group_that_became_another_is_the_same_place(there: tuple[Between, Telegram]) -> None:
    inbox, adapter = Inbox(), there[1]
    old = {"id": -77, "type": "group", "title": "Kitchen"}
    await adapter.take(update(chat=old, text=None, migrate_to_chat_id=GROUP["id"]), inbox.accept)
    became = update(chat=GROUP, text=None, sender_chat=GROUP, migrate_from_chat_id=-77)
    await adapter.take({**became, "update_id": 901}, inbox.accept)
    await adapter.take({**update(chat=GROUP, message_id=8), "update_id": 902}, inbox.accept)
    assert [(said.place.address.chat, said.chat_aliases) for said in inbox.arrivals] == [
        ("-77", (THERE.chat,)),
        (THERE.chat, ("-77",)),
        (THERE.chat, ("-77",)),
    ]
    assert inbox.texts == ["hello"]


# Files


async def test_a_file_is_fetched_and_kept(there: tuple[Between, Telegram]) -> None:
    (between, adapter), inbox = there, Inbox()
    between.files["doc1"] = b"%PDF"
    document = {"file_id": "doc1", "file_name": "plan.pdf", "mime_type": "application/pdf", "file_size": 4}
    await adapter.take(update(text=None, caption="look", document=document), inbox.accept)
    text, file = inbox.arrivals[0].parts
    assert text == Text("look")
    assert isinstance(file, File)
    assert (file.name, file.media, file.size) == ("plan.pdf", "application/pdf", 4)


@pytest.mark.parametrize("document", [{"file_id": "gone"}, {"file_id": "doc1", "file_size": 21 * 1024 * 1024}])
async def test_a_file_that_cannot_be_had_keeps_no_message(
    there: tuple[Between, Telegram], document: dict[str, Any]
) -> None:
    (between, adapter), inbox = there, Inbox()
    between.files["doc1"] = b"large"
    await adapter.take(update(text=None, caption="look", document=document), inbox.accept)
    assert [type(part) for part in inbox.arrivals[0].heard.parts] == [Text, Aside]


async def test_a_file_that_may_come_later_is_waited_for_but_not_for_ever(there: tuple[Between, Telegram]) -> None:
    (between, adapter), inbox = there, Inbox()
    between.refuse = lambda method, _: refusal(502, "Bad Gateway") if method == "getFile" else None
    raw = update(text=None, voice={"file_id": "v1", "mime_type": "audio/ogg", "duration": 3})
    for _ in range(2):
        with pytest.raises(Disconnected):
            await adapter.take(raw, inbox.accept)
    assert not inbox.arrivals
    await adapter.take(raw, inbox.accept)
    assert [type(part) for part in inbox.arrivals[0].heard.parts] == [Aside]


# What goes out


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("plain & <b>", "plain &amp; &lt;b&gt;"),
        ("**bold** *it* ~~gone~~ `co<de`", "<b>bold</b> <i>it</i> <s>gone</s> <code>co&lt;de</code>"),
        ("# Head\n\ntext", "<b>Head</b>\n\ntext"),
        ("- a\n- b\n  - c", "• a\n• b\n  • c"),
        ("3. a\n4. b", "3. a\n4. b"),
        ("> quoted\n> more", "<blockquote>quoted\nmore</blockquote>"),
        ("> a\n> > b", "<blockquote>a\n\nb</blockquote>"),
        ("```py\nif a < b:\n```", '<pre><code class="language-py">if a &lt; b:</code></pre>'),
        ("```\ncode\n```", "<pre>code</pre>"),
        ('[here](https://e.example/?a=1&b="2)', '<a href="https://e.example/?a=1&amp;b=%222">here</a>'),
        ("[here](javascript:alert(1))", "[here](javascript:alert(1))"),
        ("[here](/relative)", "here"),
        ("![cat](https://e.example/cat.png)", '<a href="https://e.example/cat.png">cat</a>'),
        ("one\ntwo\n\nthree", "one\ntwo\n\nthree"),
        ("|a|bb|\n|-|-|\n|ccc|d|", "<pre>a   | bb\nccc | d</pre>"),
        ("a\n\n---\n\nb", "a\n\n———\n\nb"),
        ("snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"),
        ("**open", "**open"),
    ],
)
def test_markdown_becomes_what_telegram_reads(markdown: str, html: str) -> None:
    assert render(markdown) == html


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("plain, **bold**, `code`, > quoted and $5 or $6", ""),
        ("# Head\n\n*text*", "<h1>Head</h1><p><em>text</em></p>"),
        ("- a\n- b\n  - c", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>"),
        ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
        (
            "|a|\n|-:|\n|<|",
            '<table bordered><tr><th align="right">a</th></tr><tr><td align="right">&lt;</td></tr></table>',
        ),
        ("$$a < b$$", "<tg-math-block>a &lt; b</tg-math-block>"),
        (r"so \(x^2\) it is", "<p>so <tg-math>x^2</tg-math> it is</p>"),
        ("# A\n\n```\n$$code$$\n```", "<h1>A</h1><pre><code>$$code$$\n</code></pre>"),
        ("# A\n\n![cat](https://e.example/cat)", '<h1>A</h1><p><a href="https://e.example/cat">cat</a></p>'),
        ("# A\n\n[here](javascript:alert(1))", "<h1>A</h1><p>[here](javascript:alert(1))</p>"),
        ("# A\n\n<b>no</b>", "<h1>A</h1><p>&lt;b&gt;no&lt;/b&gt;</p>"),
        ("$$ never closed", ""),
        ("# A \ue000", ""),
    ],
)
def test_what_a_plain_message_cannot_show_becomes_a_rich_one(markdown: str, html: str) -> None:
    assert rich(markdown) == html


async def test_a_final_text_with_a_table_is_a_rich_message(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    between.refuse = lambda _, body: Response('{"ok": true, "result": true}') if "rich_message" in body else None
    table = "|a|b|\n|-|-|\n|c|d|"
    await adapter.edit(a_delivery(table, message="1", attempt=1, choices=("/yes",)))
    method, body = between.calls[-1]
    assert (method, json.loads(body["rich_message"])) == ("editMessageText", {"html": rich(table)})
    assert "text" not in body
    assert "/yes" in body["reply_markup"]


async def test_a_text_that_still_grows_is_a_plain_message(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    message = await adapter.send(a_delivery("…"))
    await adapter.edit(a_delivery("|a|b|\n|-|-|\n|c|", message=message))
    assert "rich_message" not in between.calls[-1][1]


async def test_a_rich_message_that_is_refused_is_sent_as_a_plain_one(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    message = await adapter.send(a_delivery("…"))
    why = "Bad Request: RICH_MESSAGE_INVALID"
    between.refuse = lambda _, body: refusal(400, why) if "rich_message" in body else None
    for text in ("# One", "# Two"):
        await adapter.edit(a_delivery(text, message=message, attempt=1))
        assert between.read(HERE)[-1].text == text[2:]
    # A server from before rich messages misses the text, and isn't asked again.
    why = "Bad Request: message text is empty"
    for text in ("# Three", "# Four"):
        await adapter.edit(a_delivery(text, message=message, attempt=1))
        assert between.read(HERE)[-1].text == text[2:]
    assert sum("rich_message" in body for _, body in between.calls) == 3


async def test_a_message_that_is_gone_is_gone_for_a_rich_one_too(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    between.refuse = lambda *_: refusal(400, "Bad Request: message to edit not found")
    with pytest.raises(MessageGone):
        await adapter.edit(a_delivery("# Head", message="1", attempt=1))


def test_what_is_seen_is_what_is_counted() -> None:
    assert visible(render("**a** & [b](https://e.example) `<i>`")) == "a & b <i>"
    assert utf16("a🚀") == 3


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[tuple[Between, Telegram]]:
    async with telegram(tmp_path) as (between, url):
        adapter = Telegram("bot", Secret(TOKEN), Shelf(), url, pace=BRISK)
        yield between, adapter
        await adapter.close()


async def test_a_text_that_grows_too_long_by_rendering_is_sent_as_it_is(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    table = "|a|b|\n|-|-|\n" + "|x|y|\n" * 100 + f"|{'z' * 2000}|y|\n"
    await adapter.send(a_delivery(table))
    method, body = between.calls[-1]
    assert method == "sendMessage"
    assert "parse_mode" not in body
    assert between.read(HERE)[0].text == table


async def test_a_text_of_which_nothing_would_be_seen_is_sent_as_it_is(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    await adapter.send(a_delivery("[note]: https://e.example"))
    assert between.read(HERE)[0].text == "[note]: https://e.example"


async def test_links_are_not_looked_into(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    await adapter.send(a_delivery("https://e.example/?secret"))
    assert json.loads(between.calls[-1][1]["link_preview_options"]) == {"is_disabled": True}


async def test_choices_are_buttons_that_say_them(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    await adapter.send(a_delivery("May they read it?", choices=("/yes", "/no")).placeholder)
    assert "reply_markup" not in between.calls[-1][1]
    await adapter.edit(a_delivery("May they read it?", choices=("/yes", "/no", "x" * 65), message="1"))
    rows = json.loads(between.calls[-1][1]["reply_markup"])["inline_keyboard"]
    assert [(b["text"], b["callback_data"]) for row in rows for b in row] == [("Yes", "/yes"), ("No", "/no")]


async def test_in_a_group_the_answer_names_what_it_answers(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    await adapter.send(a_delivery("yes", THERE, answers=("3", "7.900")))
    assert json.loads(between.calls[-1][1]["reply_parameters"])["message_id"] == 7
    await adapter.send(a_delivery("yes", answers=("7",)))
    assert "reply_parameters" not in between.calls[-1][1]
    await adapter.send(a_delivery("yes", THERE, answers=("button.99",)))
    assert "reply_parameters" not in between.calls[-1][1]


async def test_a_command_that_nobody_else_saw_is_answered_so_that_nobody_else_sees_it(
    there: tuple[Between, Telegram],
) -> None:
    between, adapter = there
    assert [adapter.whispers_to(message) for message in ("ephemeral.5.900", "5", "button.99")] == [True, False, False]
    whisper = a_delivery("It is **well**.", THERE, answers=("ephemeral.5.900",), only="501")
    sent = await adapter.send(whisper.placeholder)
    _, body = between.calls[-1]
    assert json.loads(body["ephemeral_message_parameters"]) == {"receiver_user_id": 501}
    assert json.loads(body["reply_parameters"]) == {"ephemeral_message_id": 5}
    await adapter.edit(whisper.with_message(sent))
    assert between.whispered == {(THERE.chat, "501"): {"1": "It is well."}}
    assert between.read(THERE) == []
    await adapter.delete(THERE, sent)
    assert between.whispered == {(THERE.chat, "501"): {"1": ""}}


async def test_what_one_person_is_to_see_comes_in_private_where_telegram_refuses_it(
    there: tuple[Between, Telegram],
) -> None:
    between, adapter = there
    late = "Bad Request: MESSAGE_NOT_COMMAND"
    between.refuse = lambda _, body: refusal(400, late) if "ephemeral_message_parameters" in body else None
    whisper = a_delivery("It is well.", THERE, answers=("ephemeral.5.900",), only="501")
    sent = await adapter.send(whisper.placeholder)
    await adapter.edit(whisper.with_message(sent))
    assert [seen.text for seen in between.read(HERE)] == ["It is well."]
    assert between.read(THERE) == []
    await adapter.delete(THERE, sent)
    assert between.calls[-1] == ("deleteMessage", {"chat_id": "501", "message_id": between.read(HERE)[0].message})


async def test_what_a_group_itself_asked_for_is_not_told_to_everybody_in_it(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    unseen = arrival(update(**UNSEEN, text="/status", sender_chat=GROUP))
    late = "Bad Request: USER_NOT_FOUND"
    between.refuse = lambda _, body: refusal(400, late) if "ephemeral_message_parameters" in body else None
    only = unseen.speaker.identity.user
    with pytest.raises(SendNever, match="USER_NOT_FOUND"):
        await adapter.send(a_delivery("It is well.", THERE, answers=(unseen.message,), only=only))
    assert between.read(THERE) == []


async def plans(adapter: Telegram, name: str = "plans.md", media: str = "text/markdown") -> File:
    async def content() -> AsyncIterator[bytes]:
        yield b"# Plans"

    return await adapter._attachments._files.keep(name, media, content())


@pytest.mark.parametrize(("media", "kind"), [("text/markdown", "document"), ("image/png", "photo")])
async def test_a_message_becomes_its_file(there: tuple[Between, Telegram], media: str, kind: str) -> None:
    between, adapter = there
    number = await adapter.send(a_delivery("…"))
    file = await plans(adapter, "plans", media)
    for _ in range(2):
        await adapter.edit(a_delivery("Here **it** is.", message=number, file=file, choices=("/yes",)))
    assert [method for method, _ in between.calls] == ["sendMessage", "editMessageMedia", "editMessageMedia"]
    assert [seen.text for seen in between.read(HERE)] == ["Here it is."]
    assert between.attached == {(HERE.chat, number): "plans"}
    assert json.loads(between.calls[-1][1]["media"])["type"] == kind
    assert "reply_markup" in between.calls[-1][1]


async def test_a_file_is_a_message_of_its_own(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    for text in ("", "Here **it** is."):
        await adapter.send(a_delivery(text, file=await plans(adapter)))
    assert [(method, body["caption"]) for method, body in between.calls] == [
        ("sendDocument", ""),
        ("sendDocument", "Here <b>it</b> is."),
    ]


async def test_a_picture_that_telegram_does_not_take_for_one_comes_as_a_file(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    picture, why = await plans(adapter, "tall.png", "image/png"), "Bad Request: PHOTO_INVALID_DIMENSIONS"

    def too_tall(method: str, body: dict[str, Any]) -> Response | None:
        is_photo = method == "sendPhoto" or '"photo"' in body.get("media", "")
        return refusal(400, why) if is_photo else None

    between.refuse = too_tall
    await adapter.send(a_delivery("Look", file=picture))
    number = await adapter.send(a_delivery("…"))
    await adapter.edit(a_delivery("Look", message=number, file=picture))
    assert between.attached == {(HERE.chat, number): "tall.png"}
    assert [method for method, _ in between.calls] == [
        "sendPhoto",
        "sendDocument",
        "sendMessage",
        "editMessageMedia",
        "editMessageMedia",
    ]
    assert json.loads(between.calls[-1][1]["media"])["type"] == "document"
    between.refuse = lambda *_: refusal(400, "Bad Request: message to edit not found")
    calls = len(between.calls)
    with pytest.raises(MessageGone):
        await adapter.edit(a_delivery("Look", message=number, file=picture))
    assert len(between.calls) == calls + 1


async def test_a_file_that_is_gone_is_told(there: tuple[Between, Telegram]) -> None:
    with pytest.raises(SendNever, match=r"plans\.md"):
        await there[1].send(a_delivery("Here", file=File("plans.md", "text/markdown", "files/gone")))


ANSWERS = [
    (429, "Too Many Requests: retry after 17", {"parameters": {"retry_after": 17}}, SendLater),
    (400, "Bad Request: chat not found", {}, SendNever),
    (403, "Forbidden: bot was blocked by the user", {}, SendNever),
    (401, "Unauthorized", {}, SendLater),
    (500, "Internal Server Error", {}, SendUnsure),
    (502, "Bad Gateway", {}, SendUnsure),
]


@pytest.mark.parametrize(("status", "says", "more", "becomes"), ANSWERS, ids=[str(a[0]) for a in ANSWERS])
async def test_what_an_answer_means(
    there: tuple[Between, Telegram], status: int, says: str, more: dict[str, Any], becomes: type[Exception]
) -> None:
    between, adapter = there
    between.refuse = lambda *_: refusal(status, says, **more)
    with pytest.raises(becomes) as told:
        await adapter.send(a_delivery("hello"))
    assert TOKEN not in str(told.value)
    if isinstance(told.value, SendLater) and status == 429:
        assert told.value.seconds == 17


async def test_a_server_that_is_away_took_nothing() -> None:
    adapter = Telegram("bot", Secret(TOKEN), Shelf(), "http://127.0.0.1:1", pace=BRISK)
    with pytest.raises(SendLater, match="reached"):
        await adapter.send(a_delivery("hello"))
    with pytest.raises(SendLater):
        await adapter.start_link("CDFG-HJ34")
    with pytest.raises(Disconnected):
        await adapter.run(Given(Inbox().accept))
    await adapter.close()


async def test_an_edit_that_changes_nothing_is_done(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    says = "Bad Request: message is not modified: specified new message content is exactly the same"
    between.refuse = lambda *_: refusal(400, says)
    await adapter.edit(a_delivery("same", message="1"))
    between.refuse = lambda *_: refusal(400, "Bad Request: message to edit not found")
    with pytest.raises(SendNever, match="not found"):
        await adapter.edit(a_delivery("gone", message="1"))


async def test_a_lost_placeholder_is_known_by_an_edit_that_would_change_nothing(
    there: tuple[Between, Telegram],
) -> None:
    between, adapter = there
    says = {
        "42": "Bad Request: message can't be edited",
        "43": "Bad Request: message to edit not found",
        "44": "Bad Request: there is no text in the message to edit",
        "45": "Bad Request: message is not modified: specified new message content is exactly the same",
    }
    between.refuse = lambda _method, body: refusal(400, says[str(body["message_id"])])
    delivery = a_delivery("the answer", answers=("40", "41"))
    assert [id for id in adapter.ids_after(delivery) if id in says] == list(says)
    assert [await adapter.is_placeholder(delivery, id) for id in says] == [False, False, False, True]
    assert {body["text"] for _, body in between.calls} == {PLACEHOLDER}
    assert adapter.ids_after(a_delivery("a notice")) == []


async def test_markup_that_telegram_cannot_read_is_sent_as_it_is(there: tuple[Between, Telegram]) -> None:
    between, adapter = there

    def picky(_method: str, body: dict[str, Any]) -> Any:
        return refusal(400, "Bad Request: can't parse entities: unexpected tag") if "parse_mode" in body else None

    between.refuse = picky
    await adapter.send(a_delivery("**bold**"))
    assert between.read(HERE)[0].text == "**bold**"


async def test_a_group_that_became_another_is_written_to_there(there: tuple[Between, Telegram]) -> None:
    between, adapter = there

    def moved(_method: str, body: dict[str, Any]) -> Any:
        if body.get("chat_id") != "-77":
            return None
        says = "Bad Request: group chat was upgraded to a supergroup chat"
        return refusal(400, says, parameters={"migrate_to_chat_id": int(THERE.chat)})

    between.refuse = moved
    old = Address("telegram", "bot", "", "-77")
    await adapter.send(a_delivery("hello", old))
    await adapter.send(a_delivery("again", old))
    assert [seen.text for seen in between.read(THERE)] == ["hello", "again"]
    assert [body["chat_id"] for _, body in between.calls] == ["-77", THERE.chat, THERE.chat]


@pytest.mark.parametrize("call", ["typing", "open_thread"])
async def test_whatever_is_called_first_finds_the_group_that_became_another(
    there: tuple[Between, Telegram], call: str
) -> None:
    between, adapter = there
    forum = await between.forum()

    def moved(_method: str, body: dict[str, Any]) -> Any:
        says = "Bad Request: group chat was upgraded to a supergroup chat"
        parameters = {"migrate_to_chat_id": int(forum)}
        return refusal(400, says, parameters=parameters) if body.get("chat_id") == "-77" else None

    between.refuse = moved
    old = Address("telegram", "bot", "", "-77")
    if call == "typing":
        await adapter.typing(old)
    else:
        assert (await adapter.open_thread(old, "Plans", "k")).chat == "-77"
    assert [body["chat_id"] for _, body in between.calls] == ["-77", forum]


async def test_a_topic_that_nobody_waited_for_is_the_one_that_is_asked_for_again(
    there: tuple[Between, Telegram],
) -> None:
    between, adapter = there
    forum = Address("telegram", "bot", "", await between.forum())
    made, go_on = asyncio.Event(), asyncio.Event()

    async def dawdle(_method: str, _body: dict[str, Any]) -> None:
        made.set()
        await go_on.wait()

    between.taken = dawdle
    impatient = asyncio.create_task(adapter.open_thread(forum, "Plans", "k"))
    await made.wait()
    impatient.cancel()
    await asyncio.wait([impatient])
    again = asyncio.create_task(adapter.open_thread(forum, "Plans", "k"))
    go_on.set()
    topic = await again
    assert await adapter.open_thread(forum, "Plans", "k") == topic
    assert [method for method, _ in between.calls] == ["createForumTopic"]


async def test_a_topic_has_a_name_that_telegram_takes(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    forum = Address("telegram", "bot", "", await between.forum())
    for title in ("x" * 129, " \n"):
        await adapter.open_thread(forum, title, title)
    assert [body["name"] for _, body in between.calls] == ["x" * 128, "Session"]


async def test_a_topic_that_could_not_be_opened_is_tried_again(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    forum = Address("telegram", "bot", "", await between.forum())
    between.refuse = lambda *_: refusal(400, "Bad Request: the chat is not a forum")
    with pytest.raises(SendNever):
        await adapter.open_thread(forum, "Plans", "k")
    between.refuse = lambda *_: None
    assert (await adapter.open_thread(forum, "Plans", "k")).thread


async def test_telegrams_limits_are_kept_before_they_are_hit(there: tuple[Between, Telegram]) -> None:
    between, _ = there
    slow = Pace(chat=Rate(1, 100.0))
    adapter = Telegram("bot", Secret(TOKEN), Shelf(), there[1]._api.base, pace=slow)
    await adapter.send(a_delivery("one"))
    with pytest.raises(SendLater) as told:
        await adapter.send(a_delivery("two"))
    assert told.value.seconds is not None
    assert 90 < told.value.seconds <= 100
    await adapter.send(a_delivery("elsewhere", THERE))
    await adapter.edit(a_delivery("one more", message="1"))
    assert [method for method, _ in between.calls] == ["sendMessage", "sendMessage", "editMessageText"]
    await adapter.close()


async def test_a_group_gets_no_more_in_a_minute_than_telegram_allows(there: tuple[Between, Telegram]) -> None:
    between, clock = there[0], HandClock()
    forum = Address("telegram", "bot", "", await between.forum())
    adapter = Telegram("bot", Secret(TOKEN), Shelf(), there[1]._api.base, ticks=clock)
    for n in range(20):
        await adapter.send(a_delivery(f"number {n}", forum))
        clock.passes(1.0)
    with pytest.raises(SendLater) as told:
        await adapter.send(a_delivery("one too many", forum))
    assert told.value.seconds == pytest.approx(40.0)
    clock.passes(40.0)
    await adapter.send(a_delivery("now", forum))
    assert len(between.read(forum)) == 21
    await adapter.close()


async def test_a_chat_that_telegram_wants_left_alone_is(there: tuple[Between, Telegram]) -> None:
    between, clock = there[0], HandClock()
    adapter = Telegram("bot", Secret(TOKEN), Shelf(), there[1]._api.base, pace=BRISK, ticks=clock)
    between.refuse = lambda *_: refusal(429, "Too Many Requests: retry after 17", parameters={"retry_after": 17})
    with pytest.raises(SendLater):
        await adapter.send(a_delivery("hello"))
    between.refuse = lambda *_: None
    clock.passes(7.0)
    for again in (adapter.send(a_delivery("hello")), adapter.edit(a_delivery("hello", message="1"))):
        with pytest.raises(SendLater) as told:
            await again
        assert told.value.seconds == pytest.approx(10.0)
    await adapter.send(a_delivery("elsewhere", THERE))
    clock.passes(10.0)
    await adapter.send(a_delivery("hello"))
    assert [body["chat_id"] for _, body in between.calls] == ["501", THERE.chat, "501"]
    await adapter.close()


async def test_a_topic_that_is_refused_says_what_to_turn_on(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    between.refuse = lambda *_: refusal(400, "Bad Request: the chat is not a forum")
    with pytest.raises(SendNever, match="its settings"):
        await adapter.open_thread(THERE, "Plans", "k")
    with pytest.raises(SendNever, match="BotFather"):
        await adapter.open_thread(HERE, "Plans", "k")


async def test_the_menu_and_the_start_link(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    assert isinstance(adapter, HasStartLinks)
    async with living(adapter, Given(Inbox().accept, commands=SPECS)):
        await between.changes.until(
            lambda: "setMyCommands" in [method for method, _ in between.calls] or None, lambda: "no menu"
        )
    menu = json.loads(next(body["commands"] for method, body in between.calls if method == "setMyCommands"))
    assert [entry["command"] for entry in menu] == [spec.name for spec in SPECS]
    unseen = [spec.name for spec in SPECS if spec.shown_to is ShownTo.ASKER]
    assert [entry["command"] for entry in menu if entry.get("is_ephemeral")] == unseen
    assert await adapter.start_link("CDFG-HJ34") == f"https://t.me/{BOT}?start=CDFG-HJ34"


async def test_a_menu_that_is_refused_keeps_nobody_deaf(
    there: tuple[Between, Telegram], caplog: pytest.LogCaptureFixture
) -> None:
    between, adapter = there
    between.refuse = lambda method, _: refusal(500, "no menu today") if method == "setMyCommands" else None
    inbox = Inbox()
    async with living(adapter, Given(inbox.accept, commands=SPECS)):
        await between.says("501", "hello")
        await inbox.gets("hello")
        await between.changes.until(lambda: "the menu of telegram.bot" in caplog.text or None, lambda: caplog.text)


async def test_a_menu_that_is_to_come_later_keeps_nobody_deaf_and_comes_later(
    there: tuple[Between, Telegram],
) -> None:
    between, adapter = there
    inbox, menus = Inbox(), list[str]()

    def patience(method: str, _: dict[str, Any]) -> Any:
        if method != "setMyCommands":
            return None
        menus.append("" if inbox.texts else "too soon")
        return refusal(429, "Too Many Requests", parameters={"retry_after": 0.05}) if menus[-1] else None

    between.refuse = patience
    async with living(adapter, Given(inbox.accept, commands=SPECS)):
        await between.changes.until(lambda: menus or None, lambda: "no menu")
        await between.says("501", "hello")
        await inbox.gets("hello")
        await between.changes.until(lambda: "" in menus or None, lambda: "no menu again")


async def test_a_pressed_button_is_let_go_of_once_it_is_durable(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    pressed = {"id": "99", "from": ANN, "data": "/yes", "message": message(**{"from": SELF})}

    async def accept(_: Arrived) -> Accepted:
        assert "answerCallbackQuery" not in [method for method, _ in between.calls]
        return Accepted.NEW

    await adapter.take({"update_id": 900, "callback_query": pressed}, accept)
    assert [method for method, _ in between.calls][-2:] == ["answerCallbackQuery", "editMessageReplyMarkup"]
    assert between.calls[-2][1] == {"callback_query_id": "99"}
    assert between.calls[-1][1].get("reply_markup") is None


# Polling


async def test_the_offset_moves_only_past_what_was_accepted(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    inbox, refused = Inbox(), asyncio.Event()
    for text in ("one", "two", "three"):
        await between.says("501", text)

    async def accept(arrived: Arrived) -> Accepted:
        if isinstance(arrived, Arrival) and plain_text(arrived.parts) == "two" and not refused.is_set():
            refused.set()
            raise StoreFull("no room")
        return await inbox.accept(arrived)

    with pytest.raises(StoreFull):
        await adapter.run(Given(accept))
    polling = asyncio.create_task(adapter.run(Given(accept)))
    await inbox.gets("three")
    polling.cancel()
    await asyncio.wait([polling])
    assert inbox.texts == ["one", "two", "three"]
    polls = [body for method, body in between.calls if method == "getUpdates"]
    assert "offset" not in polls[0]
    assert "offset" not in polls[1], "what was refused must be told again"


async def test_a_bot_that_somebody_else_polls_with_is_told(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    says = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
    between.refuse = lambda method, _: refusal(409, says) if method == "getUpdates" else None
    with pytest.raises(Disconnected, match="Somebody else uses this bot"):
        await adapter.run(Given(Inbox().accept))


# The webhook


@pytest.fixture
async def called() -> AsyncIterator[TelegramByWebhook]:
    account = TelegramAccount(Secret(TOKEN), "https://segue.example.org/", "http://127.0.0.1:1")
    adapter = account.adapter("bot", Shelf())
    assert isinstance(adapter, TelegramByWebhook)
    adapter._me = ME
    yield adapter
    await adapter.close()


PROOF = {HEADER: secret_of(Secret(TOKEN), "bot")}


async def test_an_address_that_telegram_will_not_call_is_told(there: tuple[Between, Telegram]) -> None:
    between, adapter = there
    told = TelegramByWebhook("bot", Secret(TOKEN), Shelf(), adapter._api.base, webhook="https://segue.example.org")
    refused = refusal(400, "Bad Request: bad webhook: Failed to resolve host")
    between.refuse = lambda method, _: refused if method == "setWebhook" else None
    with pytest.raises(Disconnected, match=r"won't call https://segue.example.org/in/telegram/bot. .*resolve host"):
        await told.run(Given(Inbox().accept))
    await told.close()


CALLED = "https://segue.example.org/in/telegram/bot"
LATER = 4_000_000_000


@pytest.mark.parametrize(
    ("known", "told"),
    [
        ({"url": "https://elsewhere.example"}, "Somebody else told Telegram to call elsewhere"),
        (
            {
                "url": CALLED,
                "pending_update_count": 3,
                "last_error_date": LATER,
                "last_error_message": "Wrong answer: 502",
            },
            "Telegram can't call .*: Wrong answer: 502",
        ),
    ],
)
async def test_a_webhook_that_is_not_called_any_more_is_told(
    there: tuple[Between, Telegram], monkeypatch: pytest.MonkeyPatch, known: dict[str, Any], told: str
) -> None:
    between, looks = (
        there[0],
        iter([{"last_error_date": LATER}, {"pending_update_count": 1, "last_error_date": 1}, known]),
    )
    monkeypatch.setattr(adapter_file, "_LOOK", 0.001)
    webhook = TelegramByWebhook("bot", Secret(TOKEN), Shelf(), there[1]._api.base, webhook="https://segue.example.org")

    def answer(method: str, _: dict[str, Any]) -> Response | None:
        if method not in {"setWebhook", "getWebhookInfo"}:
            return None
        fine = {"url": CALLED, "has_custom_certificate": False, "pending_update_count": 0}
        return JSONResponse({"ok": True, "result": True if method == "setWebhook" else fine | next(looks)})

    between.refuse = answer
    with pytest.raises(Disconnected, match=told):
        await webhook.run(Given(Inbox().accept))
    assert not list(looks), "what is over or waits was taken for trouble"
    await webhook.close()


async def test_an_update_with_the_secret_is_taken_in(called: TelegramByWebhook) -> None:
    inbox = Inbox()
    app = called.webhook(inbox.accept)
    assert (await post(app, "/", json.dumps(update()).encode(), PROOF)).status == 200
    assert inbox.texts == ["hello"]


@pytest.mark.parametrize(
    "headers", [{}, {HEADER: ""}, {HEADER: "guess"}, {HEADER: TOKEN}, {HEADER: secret_of(Secret(TOKEN), "other")}]
)
async def test_an_update_without_the_secret_is_refused(called: TelegramByWebhook, headers: dict[str, str]) -> None:
    inbox = Inbox()
    answer = await post(called.webhook(inbox.accept), "/", json.dumps(update()).encode(), headers)
    assert (answer.status, inbox.arrivals, inbox.letters) == (401, [], [])


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[1]", b'{"update_id": 1, "message": 2}', b"[" * 10_000])
async def test_what_cannot_be_read_is_kept_and_acknowledged(called: TelegramByWebhook, body: bytes) -> None:
    inbox = Inbox()
    assert (await post(called.webhook(inbox.accept), "/", body, PROOF)).status == 200
    assert len(inbox.letters) == 1


async def test_what_cannot_be_kept_is_sent_again(called: TelegramByWebhook) -> None:
    inbox = Inbox()
    inbox.refusals = 1
    app = called.webhook(inbox.accept)
    assert (await post(app, "/", json.dumps(update()).encode(), PROOF)).status == 503
    assert (await post(app, "/", json.dumps(update()).encode(), PROOF)).status == 200


async def test_an_update_whose_file_may_come_later_is_called_with_again(called: TelegramByWebhook) -> None:
    inbox = Inbox()
    app = called.webhook(inbox.accept)
    body = json.dumps(update(document={"file_id": "doc1"})).encode()
    assert [(await post(app, "/", body, PROOF)).status for _ in range(3)] == [503, 503, 200]
    assert [type(part) for part in inbox.arrivals[0].heard.parts] == [Text, Aside]


async def test_too_much_is_not_read(called: TelegramByWebhook) -> None:
    inbox = Inbox()
    assert (await post(called.webhook(inbox.accept), "/", b" " * (LARGEST + 1), PROOF)).status == 413
    assert not inbox.letters


# The account


@pytest.mark.parametrize(
    ("keys", "field"),
    [
        ({"token": Secret("hello")}, "token"),
        ({"token": Secret(TOKEN), "webhook": "segue.example.org"}, "webhook"),
        ({"token": Secret(TOKEN), "api": "ftp://example.org"}, "api"),
        ({"token": Secret(TOKEN), "api": "http://a:b@example.org"}, "api"),
    ],
)
def test_a_mistake_in_the_account_is_named(keys: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as told:
        TelegramAccount(**keys)
    assert told.value.field == field
    assert "hello" not in str(told.value)


def test_a_text_fits_by_what_is_seen_of_it() -> None:
    links = "\n".join(f"- [page {n}](https://example.org/{'far/' * 30})" for n in range(60))
    table = "\n".join(["| a | b |", "| --- | --- |", f"| {'long ' * 60} | c |", *["| d | e |"] * 200])
    assert (len(links) > 4096, fits(links)) == (True, True)
    assert (len(table) < 4096, fits(table)) == (True, False)
    assert (fits("x" * 4096), fits("x" * 4097), fits("🚀" * 2048), fits("🚀" * 2049)) == (True, False, True, False)
