"""What Feishu may tell and answer, recorded from its public documentation: all that crabline doesn't know.

Events, kinds of messages, error codes, the registration of an app by a code. What crabline does know (its long
connection with messages in several parts, tokens) is asked of crabline.
"""

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from segue.adapters.feishu import Feishu, FeishuAccount, FeishuByEvents
from segue.adapters.feishu.account import Domain, register
from segue.adapters.feishu.api import Api, StaleToken
from segue.adapters.feishu.markup import fits, in_post, render
from segue.adapters.feishu.sockets import Frame, decode, encode
from segue.config import load
from segue.core.contracts.adapters import Accepted, Letter, Unfetched
from segue.core.contracts.setup import FoundOwner
from segue.core.lanes import Address, Identity, Kind
from segue.core.messages import Citation, Citing, File, Pressed, plain_text
from segue.core.values import Secret
from segue.errors import Disconnected, Invalid, MessageGone, SendLater, SendNever, SendUnsure
from segue.runtime.server.app import Mounted
from segue.runtime.server.listeners import Listener, serving
from segue.testing import HandClock, Shelf
from segue.testing.asgi import post
from segue.testing.contracts.base import a_delivery
from segue.testing.harness import Bookmark, Given, living
from segue.testing.inbox import Inbox
from tests.contracts.test_feishu import EventsHarness, FeishuHarness
from tests.forge import done
from tests.served import PATIENCE
from tests.servers.feishu import APP, BOT, KEY, PEOPLE, SECRET, TOKEN, feishu, refusal, sealed, signed

Json = dict[str, Any]
GROUP = Address("feishu", "bot", "", "oc_group")
EVENTS = itertools.count(1)
FORWARDED = {"message_id": "om_forwarded"}


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[FeishuHarness]:
    async with feishu(tmp_path) as (between, url):
        made = FeishuHarness(between, url)
        yield made
        for adapter in made.adapters:
            await adapter.close()


def event(kind: str, told: Json) -> Json:
    return {"schema": "2.0", "header": {"event_id": f"e{next(EVENTS)}", "event_type": kind}, "event": told}


def message(kind: str = "text", content: Any = None, sender: str = "user", **about: Any) -> Json:
    said = {"message_id": "om_1", "chat_id": "oc_group", "chat_type": "group", "create_time": "1700000000000"}
    said |= {"message_type": kind, "content": json.dumps({"text": "hello"} if content is None else content), **about}
    return event(
        "im.message.receive_v1",
        {"sender": {"sender_id": {"open_id": PEOPLE["Ann"]}, "sender_type": sender}, "message": said},
    )


async def hears(harness: FeishuHarness, *told: Json) -> Inbox:
    """What an adapter makes of events."""
    inbox, adapter = Inbox(), harness.adapter()
    for each in told:
        await adapter.take(each, inbox.accept)
    return inbox


async def test_a_message_in_parts_is_one_and_is_acknowledged_by_its_last(harness: FeishuHarness) -> None:
    inbox, chat = Inbox(), harness.between.private("Ann")
    async with harness.deliver(harness.adapter(), inbox.accept):
        await harness.between.says(chat, "in three parts", fragments=3, fragmentOrder=[2, 0, 1])
        await inbox.gets("in three parts")
        # crabline would have hung up on an acknowledgement of another frame.
        await harness.between.says(chat, "after that")
        await inbox.gets("after that")
        assert [path for _, path, _ in harness.between.calls].count("/callback/ws/endpoint") == 1
    assert inbox.texts == ["in three parts", "after that"]


def test_frames_are_read_as_they_are_written_and_nothing_else_is() -> None:
    rest = ((1, 2**64 - 1), (2, 300), (3, 1), (6, b"json"))
    frame = Frame(1, {"type": "event", "größe": ""}, b"\x00\xff" * 100, rest)
    raw = encode(frame)
    assert decode(raw) == frame
    for cut in range(1, len(raw)):
        try:
            assert decode(raw[:cut]) != frame
        except Disconnected:
            """What isn't whole is refused, unless it ends between two fields."""
    with pytest.raises(Disconnected):
        decode(b"\xff" * 20)


async def test_people_are_named_and_the_agents_name_before_a_command_is_left_out(harness: FeishuHarness) -> None:
    people = [("@_user_1", BOT, "Segue"), ("@_user_2", PEOPLE["Ben"], ""), ("@_user_10", "ou_x", "Zoë")]
    mentions = [{"key": key, "id": {"open_id": id}, "name": name} for key, id, name in people]
    text = {"text": "@_user_1 /title @_user_10 and @_user_2, @_all, @_user_3"}
    inbox = await hears(harness, message(content=text, mentions=mentions))
    [arrival] = inbox.said
    assert plain_text(arrival.parts) == "/title @Zoë and @Ben, @all, @_user_3"
    assert arrival.mentions_agent
    assert (arrival.place.kind, arrival.place.name, arrival.speaker.name) == (Kind.GROUP, "name of oc_group", "Ann")
    assert arrival.keys[0] == f"{GROUP.key}om_1"
    assert arrival.keys[1].startswith("event/e")


async def test_a_rich_text_is_markdown_with_its_pictures(harness: FeishuHarness) -> None:
    lines = [
        [{"tag": "text", "text": "a "}, {"tag": "text", "text": "b", "style": ["bold", "italic"]}],
        [{"tag": "a", "text": "here", "href": "https://example.org"}, {"tag": "at", "user_id": "@_all"}],
        [{"tag": "code_block", "language": "PYTHON", "text": "1 < 2\n"}],
        [{"tag": "emotion", "emoji_type": "SMILE"}, {"tag": "hr"}, {"tag": "img", "image_key": "img_1"}, 7],
        7,
    ]
    harness.between.resources["img_1"] = b"GIF8 a cat"
    inbox = await hears(harness, message("post", {"title": "Plans", "content": lines}))
    [arrival] = inbox.said
    words = "Plans\na ***b***\n[here](https://example.org)@all\n```python\n1 < 2\n```\n:SMILE:---"
    assert plain_text(arrival.parts) == words
    [file] = [part for part in arrival.parts if isinstance(part, File)]
    assert (file.name, file.media) == ("picture.gif", "image/gif")
    assert await harness.shelf.read(file) == b"GIF8 a cat"


async def test_threads_are_named_by_their_root(harness: FeishuHarness) -> None:
    in_thread = {"root_id": "om_root", "parent_id": "om_root", "thread_id": "omt_1"}
    quoting = {"root_id": "om_root", "parent_id": "om_2", "thread_id": "omt_1", "message_id": "om_3"}
    topic = {"thread_id": "omt_2", "message_id": "om_topic", "chat_type": "topic_group"}
    inbox = await hears(harness, message(**in_thread), message(**quoting), message(**topic))
    told = [(arrival.place.address.thread, arrival.quotes) for arrival in inbox.said]
    assert told == [("om_root", ""), ("om_root", "om_2"), ("om_topic", "")]


async def test_what_is_forwarded_is_cited_and_what_nobody_understands_is_a_letter(harness: FeishuHarness) -> None:
    inside = [
        {"message_id": "om_1", "msg_type": "merge_forward", "body": {"content": "Merged"}},
        {
            "message_id": "om_2",
            "msg_type": "text",
            "upper_message_id": "om_1",
            "body": {"content": '{"text":"the cat"}'},
        },
        {
            "message_id": "om_3",
            "msg_type": "image",
            "upper_message_id": "om_1",
            "body": {"content": '{"image_key":"i"}'},
        },
    ]
    inside[1]["sender"] = {"id": PEOPLE["Ben"], "sender_type": "user"}
    harness.between.refuse = lambda method, path, _: (
        JSONResponse({"code": 0, "data": {"items": inside}}) if (method, path[-5:]) == ("GET", "/om_1") else None
    )
    card = {"elements": [[{"tag": "text", "text": "a card"}]]}
    inbox = await hears(
        harness,
        message("merge_forward", "Merged and Forwarded Message"),
        message("interactive", card, message_id="om_5"),
        message("sticker", {"file_key": "x"}, message_id="om_6"),
        message("system", {}, message_id="om_7"),
        message(sender="app", message_id="om_8"),
    )
    assert [arrival.cites for arrival in inbox.said] == [
        (Citation("the cat", PEOPLE["Ben"], "Ben", Citing.FORWARD),),
        (Citation("a card", kind=Citing.FORWARD),),
    ]
    [letter] = inbox.letters
    assert isinstance(letter, Letter)
    assert letter.why.startswith("sticker: messages of this kind aren't understood")


async def test_what_is_forwarded_and_cannot_be_had_is_asked_for_again_and_then_a_letter(harness: FeishuHarness) -> None:
    answers = [Response("down", 502), refusal(230027, "Lack of necessary permissions.")]
    fetched = f"/open-apis/im/v1/messages/{FORWARDED['message_id']}"
    harness.between.refuse = lambda _, path, __: answers.pop(0) if path == fetched else None
    forwarded, inbox = message("merge_forward", "Merged and Forwarded Message", **FORWARDED), Inbox()
    with pytest.raises(SendLater):
        await harness.adapter().take(forwarded, inbox.accept)
    await harness.adapter().take(forwarded, inbox.accept)
    assert not inbox.arrivals
    [letter] = inbox.letters
    assert isinstance(letter, Letter)
    assert letter.why.startswith("merge_forward: nothing in it can be told")


async def test_a_message_that_feishu_never_manages_to_tell_holds_up_no_other_for_ever(harness: FeishuHarness) -> None:
    fetched = f"/open-apis/im/v1/messages/{FORWARDED['message_id']}"
    harness.between.refuse = lambda _, path, __: Response("down", 502) if path == fetched else None
    changed = event("im.message.updated_v1", {"message": FORWARDED})
    for told in (message("merge_forward", "Merged and Forwarded Message", **FORWARDED), changed):
        inbox, adapter = Inbox(), harness.adapter()
        for _ in range(2):
            with pytest.raises(SendLater):
                await adapter.take(told, inbox.accept)
        await adapter.take(told, inbox.accept)
        [letter] = inbox.letters
        assert isinstance(letter, Letter)
        assert letter.why.startswith("message_id: Feishu can't tell this message")


async def test_only_its_author_takes_a_message_back_and_who_brings_the_bot_is_told(harness: FeishuHarness) -> None:
    between, inbox = harness.between, Inbox()
    async with harness.deliver(harness.adapter(), inbox.accept):
        said = await between.says("oc_group", "too much")
        await inbox.gets("too much")
        await between.recalls(said, "group_owner")
        added = {"chat_id": "oc_new", "operator_id": {"open_id": PEOPLE["Ben"]}, "name": "New"}
        await between.tell("im.chat.member.bot.added_v1", added)
        await between.tell("im.message.message_read_v1", {"reader": {}})
        await between.says("oc_group", "after that")
        await inbox.gets("after that")
    assert not any(arrival.deletes for arrival in inbox.arrivals)
    [brought] = [arrival for arrival in inbox.arrivals if arrival.brings_agent]
    assert brought.place.address.chat == "oc_new"
    assert brought.speaker.identity.user == PEOPLE["Ben"]
    assert not inbox.letters


async def _lives_until(harness: FeishuHarness, inbox: Inbox, cursor: Bookmark, said: str) -> None:
    """An adapter lives until somebody's message was taken in, and its place kept."""
    given = Given(inbox.accept, cursor)
    async with living(harness.adapter(), given):
        await given.is_well()
        await harness.between.says(harness.between.private("Ann"), said)
        await inbox.gets(said)
        while "oc_private_ann" not in cursor.value:  # noqa: ASYNC110 -- the cursor tells nobody
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("kind", [FeishuHarness, EventsHarness])
async def test_what_was_said_in_a_gap_is_read_back_once_and_in_its_order(
    tmp_path: Path, kind: type[FeishuHarness]
) -> None:
    inbox, cursor = Inbox(), Bookmark()
    async with feishu(tmp_path) as (between, url):
        first, again = FeishuHarness(between, url), kind(between, url)
        private, root = between.private("Ann"), between.unheard("oc_group", "said before the first time")
        root.at -= 3600
        await _lives_until(first, inbox, cursor, "before")
        topic = between.unheard("oc_topics", "a topic", "Ben")
        between.topics.add("oc_topics")
        for n, (chat, thread) in enumerate([(private, ""), ("oc_group", root.id), ("oc_topics", topic.id)]):
            between.unheard(chat, f"gap {n}", thread=thread).at += 1 + n
        between.unheard(private, "recalled").gone = True
        between.unheard(private, "of the app's").by = APP
        for n in range(120):
            between.unheard("oc_busy", f"busy {n}").at += 10 + n
        async with living(again.adapter(), Given(inbox.accept, cursor)):
            await inbox.gets("busy 119")
        for adapter in (*first.adapters, *again.adapters):
            await adapter.close()
    busy = [f"busy {n}" for n in range(120)]
    assert inbox.texts == ["before", "a topic", *(f"gap {n}" for n in range(3)), *busy]
    there = [arrival.place.address for arrival in inbox.said][1:5]
    assert [at.thread for at in there] == [topic.id, "", root.id, topic.id]
    assert [plain_text(one.parts) for one in inbox.duplicates] == ["before"]
    assert not inbox.letters


async def test_the_root_of_a_thread_was_said_in_its_chat(harness: FeishuHarness) -> None:
    inbox, cursor, between = Inbox(), Bookmark(), harness.between
    await _lives_until(harness, inbox, cursor, "before")
    root = between.unheard(between.private("Ann"), "root")
    between.unheard(root.chat, "reply", thread=root.id).at += 1
    async with living(harness.adapter(), Given(inbox.accept, cursor)):
        await inbox.gets("reply")
    assert [arrival.place.address.thread for arrival in inbox.said] == ["", "", root.id]


async def test_what_people_edit_is_read_as_they_wrote_it_and_also_after_a_gap(harness: FeishuHarness) -> None:
    inbox, cursor, between = Inbox(), Bookmark(), harness.between
    adapter, private = harness.adapter(), between.private("Ann")
    async with living(adapter, Given(inbox.accept, cursor)):
        said = await between.says(private, "two")
        await inbox.gets("two")
        await between.changes_to(said, "2 < 3\n& <p>")
        change = await inbox.gets("2 < 3\n& <p>")
        own = await adapter.send(a_delivery(GROUP, "of the app's"))
        between.calls.clear()
        await between.changes_to(own, "grows")
        await between.tell("im.message.updated_v1", {"message": {"message_id": "om_unknown"}})
        await between.says(private, "after that")
        await inbox.gets("after that")
        assert not any(path.endswith(own) for _, path, _ in between.calls), "each change of our own would be fetched"
    assert (change.edits, change.message.partition("/")[0]) == (said, said)
    between.said[said].content, between.said[said].changed = {"text": "<p>three</p><p>lines<br/>now</p>"}, time.time()
    async with living(harness.adapter(), Given(inbox.accept, cursor)):
        change = await inbox.gets("three\nlines\nnow")
    assert change.edits == said
    assert not inbox.letters


async def test_groups_that_the_app_may_not_read_leave_the_rest_to_be_read_back(harness: FeishuHarness) -> None:
    inbox, cursor, between = Inbox(), Bookmark(), harness.between
    await _lives_until(harness, inbox, cursor, "before")
    between.shows_groups = False
    between.unheard("oc_group", "in a group")
    between.unheard(between.private("Ann"), "in private")
    async with living(harness.adapter(), Given(inbox.accept, cursor)):
        await inbox.gets("in private")
    assert inbox.texts == ["before", "in private"]


async def test_what_cannot_be_read_back_yet_is_read_back_later(
    harness: FeishuHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.adapters.shared.background._LATER", 0.0)
    inbox, cursor, between = Inbox(), Bookmark(), harness.between
    await _lives_until(harness, inbox, cursor, "before")
    between.unheard(between.private("Ann"), "in a gap")
    refusals = iter([refusal(99991400, "request trigger frequency limit", 429)])
    lists = "/open-apis/im/v1/messages"
    between.refuse = lambda method, path, _: next(refusals, None) if (method, path) == ("GET", lists) else None
    async with living(harness.adapter(), Given(inbox.accept, cursor)):
        await inbox.gets("in a gap")
    assert [path for _, path, _ in between.calls].count("/callback/ws/endpoint") == 2


async def test_a_press_is_acknowledged_once_it_is_kept_and_says_where(harness: FeishuHarness) -> None:
    between, inbox, adapter = harness.between, Inbox(), harness.adapter()
    private = Address("feishu", "bot", "", between.private("Ann"))
    async with harness.deliver(adapter, inbox.accept):
        opened = await adapter.open_thread(private, "Plans", "k1")
        asked = await adapter.send(replace(a_delivery(opened, "Sure?"), choices=("/yes", "/no", "x" * 201)))
        buttons = between.card_of(asked)["body"]["elements"][1:]
        assert [button["text"]["content"] for button in buttons] == ["Yes", "No"]
        inbox.refusals = 2
        await between.presses(asked, 1)
        arrival = await inbox.gets("/no")
    assert (arrival.pressed, arrival.place.address, arrival.place.kind) == (Pressed(asked, "/no"), opened, Kind.DM)


async def test_whoever_presses_waits_for_nobody_elses_files(harness: FeishuHarness) -> None:
    between, inbox, adapter, fetched = harness.between, Inbox(), harness.adapter(), asyncio.Event()

    async def accept(arrived: Any) -> Accepted:
        if isinstance(arrived, Unfetched):
            await fetched.wait()
        return await inbox.accept(arrived)

    async with harness.deliver(adapter, accept):
        asked = await adapter.send(replace(a_delivery(GROUP, "Sure?"), choices=("/yes", "/no")))
        await between.attach(GROUP.chat, "large.png", b"x", "Ben")
        await between.presses(asked, 0)
        await inbox.gets("/yes")
        await between.changes.until(lambda: len(between.pending) == 1 or None, lambda: "it wasn't acknowledged")
        fetched.set()
        await between.says(GROUP.chat, "after that")
        await inbox.gets("after that")
    assert [len(arrival.parts) for arrival in inbox.said] == [0, 1, 1]


async def test_a_token_is_fetched_anew_before_it_ends_and_when_feishu_does_not_know_it(harness: FeishuHarness) -> None:
    clock, between = HandClock(1000.0), harness.between
    api = Api(APP, Secret(SECRET), harness.url, clock)

    def tokens() -> int:
        return len([1 for _, path, _ in between.calls if "tenant_access_token" in path])

    try:
        await asyncio.gather(*(api.call("GET", "/bot/v3/info") for _ in range(5)))
        assert tokens() == 1
        clock.now += 7200 - 601
        await api.call("GET", "/bot/v3/info")
        assert tokens() == 1
        clock.now += 2
        await api.call("GET", "/bot/v3/info")
        assert tokens() == 2
        stale = [refusal(99991663, "Invalid access token", 401)]
        between.refuse = lambda _, path, __: stale.pop() if path.endswith("/info") and stale else None
        await api.call("GET", "/bot/v3/info")
        assert tokens() == 3
    finally:
        await api.close()


OUTCOMES: list[tuple[Response, Any, str]] = [
    (refusal(99991400, "request trigger frequency limit"), SendLater, "99991400"),
    (refusal(230020, "This operation triggers the frequency limit"), SendLater, "230020"),
    (refusal(99991672, "One of these scopes is required: [im:message]."), SendNever, "im:message"),
    (refusal(230011, "The message was withdrawn"), MessageGone, "withdrawn"),
    (refusal(99991663, "Invalid access token", 401), StaleToken, "credentials"),
    (refusal(230001, "invalid param"), SendNever, "230001"),
    (Response("oops", 502), SendLater, "502"),
    (JSONResponse({"code": 1, "msg": "busy"}, 500), SendLater, "busy"),
    (JSONResponse([7]), SendUnsure, "object"),
]


async def test_what_became_of_a_call(harness: FeishuHarness) -> None:
    answers = [answer for answer, _, _ in OUTCOMES]
    for answer, error, says in OUTCOMES:
        harness.between.refuse = lambda _, path, __, answer=answer: answer if "/im/v1/messages" in path else None  # type: ignore[misc]
        with pytest.raises(error, match=says) as raised:
            await harness.adapter().send(a_delivery(GROUP, "hello"))
        assert raised.type is error, answers.index(answer)


async def test_what_was_edited_too_often_comes_anew_and_cards_have_no_such_end(harness: FeishuHarness) -> None:
    adapter = harness.adapter()
    plain = a_delivery(GROUP, "a")
    plain = plain.with_message(await adapter.send(plain))
    for n in range(20):
        await adapter.edit(plain.with_text(f"a {n}"))
    with pytest.raises(MessageGone):
        await adapter.edit(plain.with_text("once more"))
    growing = replace(a_delivery(GROUP, ""), attempt=0)
    growing = growing.with_message(await adapter.send(growing.placeholder))
    for n in range(25):
        await adapter.edit(growing.with_text(f"b {n}"))
    assert [seen.text for seen in harness.between.read(GROUP)] == ["a 19", "b 24"]


async def test_a_thread_whose_root_was_recalled_goes_on(harness: FeishuHarness) -> None:
    between, adapter = harness.between, harness.adapter()
    root = await between.says("oc_group", "root")
    asked = await between.says("oc_group", "and?", thread=root)
    await between.recalls(root)
    there = replace(GROUP, thread=root)
    sent = await adapter.send(replace(a_delivery(there, "all the same"), answers=(asked,)))
    assert [seen.message for seen in between.read(there)] == [sent]
    with pytest.raises(SendNever, match="begins with is gone"):
        await adapter.send(a_delivery(there, "without anybody who asked"))


async def test_what_may_have_been_sent_long_ago_is_known_by_its_words(harness: FeishuHarness) -> None:
    between, adapter = harness.between, harness.adapter()
    # It answers a message that was edited while it waited.
    answers = (f"{await between.says('oc_group', 'well?')}/1700000000000",)
    wordless, said = [await adapter.send(replace(a_delivery(GROUP, text), answers=answers)) for text in ("!!", "yes")]
    between.forget_keys()
    again = replace(a_delivery(GROUP, "yes"), answers=answers, doubtful=1)
    assert await adapter.send(again) == said
    assert await adapter.send(replace(again, text="👍", answers=(answers[0].partition("/")[0],))) != wordless


async def test_five_messages_a_second_in_a_chat_and_ten_changes_of_a_card(harness: FeishuHarness) -> None:
    adapter = Feishu("bot", Api(APP, Secret(SECRET), harness.url), Shelf())
    harness.adapters.append(adapter)

    async def lasts(*calls: Any) -> float:
        started = time.monotonic()
        for call in calls:
            await call
        return time.monotonic() - started

    assert await lasts(*(adapter.send(a_delivery(GROUP, str(n))) for n in range(6))) > 0.99
    growing = replace(a_delivery(Address("feishu", "bot", "", "oc_2"), ""), attempt=0)
    growing = growing.with_message(await adapter.send(growing.placeholder))
    assert await lasts(*(adapter.edit(growing.with_text(f"{n}")) for n in range(11))) > 0.99


def test_what_an_agent_writes_is_shown_and_calls_nobody() -> None:
    said = "# Title\n\n**b** *i* ~~s~~ `<at id=all></at>`\n\n- one\n- two\n\n> q\n\n![cat](https://a.example/c.png)"
    shown = render(said).replace("\u200b", "")
    assert shown == (
        "**Title**\n\n**b** *i* ~~s~~ `<at id=all></at>`\n\n• one\n• two\n\n> q\n\n[cat](https://a.example/c.png)"
    )
    for text in ("<at id=all></at>", '<at user_id="all">x</at>', "`<at id=all>`", "```\n<at id=all>\n```", "<b>x"):
        assert "<a" not in render(text)
        assert "<b" not in render(text)
    assert in_post(render("hi <at id=ou_1></at>")) == 'hi <at user_id="ou_1"></at>'
    assert render("```html\n<b>x</b>\n```") == "```html\n<b>x</b>\n```", "code stays what it is"
    assert fits("x" * 27_000)
    assert not fits('"' * 27_000)


async def test_the_address_of_a_webhook_is_confirmed(tmp_path: Path) -> None:
    async with feishu(tmp_path) as (between, url):
        harness = EventsHarness(between, url)
        adapter = harness.adapter()
        asked = {"type": "url_verification", "token": TOKEN, "challenge": "ajls384kdjx98XX"}
        body = sealed(asked)
        for headers in ({}, signed(body)):
            answer = await post(adapter.webhook(Inbox().accept), "/", body, headers)
            assert (answer.status, json.loads(answer.body)) == (200, {"challenge": "ajls384kdjx98XX"})
        await adapter.close()


async def test_without_a_key_nobody_is_believed_whatever_they_sign(harness: FeishuHarness) -> None:
    adapter, inbox = FeishuByEvents("bot", harness.adapter()._api, Secret(TOKEN), Secret(""), Shelf()), Inbox()
    body = sealed(message(), "")
    answer = await post(adapter.webhook(inbox.accept), "/", body, signed(body, ""))
    assert (answer.status, inbox.arrivals) == (401, [])


async def test_what_the_app_lacks_is_trouble_until_it_is_granted(harness: FeishuHarness) -> None:
    harness.between.scopes -= {"cardkit:card:write", "im:message:update"}
    adapter, looked = harness.adapter(), harness.between.changes
    async with harness.deliver(adapter, Inbox().accept):
        [trouble] = await looked.until(lambda: adapter.troubles or None, lambda: "no trouble")
    assert "no scope im:message:update, cardkit:card:write: grant it at" in trouble
    assert f"/app/{APP}/auth?q=im:message:update,cardkit:card:write" in trouble


class Accounts:
    """Feishu's accounts, where apps are made: answers one after the other."""

    def __init__(self, *answers: Json) -> None:
        self.answers = list(answers)
        self.asked: list[Json] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        self.asked.append({"path": request.url.path, **dict(parse_qsl((await request.body()).decode()))})
        told = self.answers.pop(0)
        await JSONResponse(told, 400 if "error" in told else 200)(scope, receive, send)


BEGUN = {"device_code": "d1", "verification_uri_complete": "https://a.example/x?user_code=AB", "interval": 0.01}
PENDING = {"error": "authorization_pending"}
LARK = {**PENDING, "user_info": {"tenant_brand": "lark"}}


async def test_whoever_scans_a_code_has_an_app_also_on_lark() -> None:
    made = {"client_id": "cli_1", "client_secret": "s1", "user_info": {"open_id": "ou_1"}}
    china, elsewhere = Accounts(BEGUN, PENDING, {"error": "slow_down"}, LARK), Accounts(PENDING, made)
    one, two, shown = Listener("127.0.0.1", 0), Listener("127.0.0.1", 0), list[str]()
    async with serving(Mounted(china), one, 0.1), serving(Mounted(elsewhere), two, 0.1):
        found = await register(shown.append, {Domain.FEISHU: one.url, Domain.LARK: two.url})
    assert found == {"app_id": "cli_1", "app_secret": "s1", "domain": "lark"}
    assert [told.get("action") for told in china.asked] == ["begin", "poll", "poll", "poll"]
    assert china.asked[0]["archetype"] == "PersonalAgent"
    assert {told["device_code"] for told in elsewhere.asked} == {"d1"}
    assert shown == ["https://a.example/x?user_code=AB&from=sdk&tp=sdk&source=segue&name=Segue"]


@pytest.mark.parametrize(
    ("answers", "error", "says"),
    [
        ([BEGUN, {"error": "access_denied", "error_description": "no"}], Invalid, "made no app: no"),
        ([BEGUN, {"error": "expired_token"}], Invalid, "expired_token"),
        ([BEGUN, LARK, {**LARK, "error": "access_denied"}], Invalid, "made no app: access_denied"),
        ([{"error": "unsupported"}], Disconnected, "by hand"),
    ],
)
async def test_who_makes_no_app_is_told_why(answers: list[Json], error: Any, says: str) -> None:
    listener = Listener("127.0.0.1", 0)
    async with serving(Mounted(Accounts(*answers)), listener, 0.1):
        with pytest.raises(error, match=says):
            await FeishuAccount.scanned({"api": listener.url}, lambda _: None)


async def test_whoever_adds_an_app_is_found_by_what_they_write(harness: FeishuHarness) -> None:
    between = harness.between
    meeting = asyncio.create_task(FeishuAccount.meet({"app_id": APP, "app_secret": SECRET, "api": harness.url}, ""))
    await between.changes.until(lambda: between.listeners or None, lambda: "it never listened")
    await between.says("oc_group", "not in private")
    private = between.private("Ann")
    await between.says(private, "it is me")
    async with asyncio.timeout(PATIENCE):
        met = await meeting
    assert met == FoundOwner(PEOPLE["Ann"], private, f"Ann ({PEOPLE['Ann']})", met.cursor)


async def test_a_script_adds_an_app(harness: FeishuHarness, tmp_path: Path) -> None:
    home, words = tmp_path / "home", ["feishu", "--owner", PEOPLE["Ann"], "--set", f"api={harness.url}"]
    words += ["--set", f"app_id={APP}", "--set", "app_secret=env:APP"]
    harness.between.scopes -= {"im:resource"}
    async with asyncio.timeout(PATIENCE):
        code, out, err = await done("add", *words, home=home, folder=Path.cwd(), typed="", APP=SECRET)
    assert code == 0, err
    assert "The app is Crabline. It has no scope im:resource: grant it at" in out
    assert "Said hello to you on Feishu." in out
    config = load(home / "segue.toml", {"APP": SECRET})
    assert [account.path for account in config.accounts] == ["feishu.Crabline"]
    assert config.gateway.hosts == (Identity("feishu", "Crabline", PEOPLE["Ann"]),)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"app_id": "x"}, "begins with cli_"),
        ({"encrypt_key": Secret(KEY)}, "go together"),
        ({"api": "nowhere"}, "http address"),
    ],
)
def test_keys_that_cannot_be_right_are_refused(keys: Json, says: str) -> None:
    with pytest.raises(Invalid, match=says):
        FeishuAccount(**{"app_id": APP, "app_secret": Secret(SECRET), **keys})
