"""What Slack may tell and answer, recorded from its documentation: all that local-slack doesn't know."""

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from segue.adapters.shared.decoding import decode
from segue.adapters.shared.web import SLOWEST
from segue.adapters.slack import Slack, SlackAccount
from segue.adapters.slack.account import MANIFEST
from segue.adapters.slack.api import Api
from segue.adapters.slack.events import Press
from segue.adapters.slack.incoming import View
from segue.adapters.slack.markup import fits, plain, render
from segue.config import load
from segue.core.contracts.adapters import Letter
from segue.core.lanes import Address, Kind
from segue.core.messages import Citation, Citing, Delivery, File, Pressed, plain_text
from segue.core.settings import DmThreads
from segue.core.values import Secret
from segue.errors import Invalid, MessageGone, SendLater, SendNever, SendUnsure
from segue.runtime.server.app import Mounted
from segue.runtime.server.listeners import Listener, serving
from segue.testing import HandClock, Shelf
from segue.testing.contracts.base import a_delivery
from segue.testing.harness import Bookmark, Given
from segue.testing.inbox import Inbox

Json = dict[str, Any]
DM, CHANNEL = "D024BE91L", "C024BE91L"
AT = Address("slack", "main", "", CHANNEL)
ROOT, REPLY = "1782234671.392669", "1782234987.693923"


class Recorded:
    """Slack's API, which answers what a test says."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, str]]] = []
        self.posted: list[tuple[str, str]] = []
        self.waits: dict[str, asyncio.Event] = {}
        """Methods that aren't answered yet."""
        self.answers: dict[str, Any] = {
            "auth.test": {"user_id": "U0BOT", "user": "segue", "team": "Club", "team_id": "T1"},
            "users.info": {"user": {"profile": {"display_name": "Ann"}}},
            "conversations.info": {"channel": {"name": "club", "topic": {"value": "Plans"}}},
        }

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        method, body = request.url.path.rpartition("/")[2], (await request.body()).decode()
        self.calls.append((method, dict(parse_qsl(body))))
        self.posted.append((request.url.path, body))
        if method in self.waits:
            await self.waits[method].wait()
        answer = self.answers.get(method, {"ts": "1.000001"})
        answer = answer if isinstance(answer, Response) else JSONResponse({"ok": True, **answer})
        await answer(scope, receive, send)

    def called(self, method: str) -> list[dict[str, str]]:
        return [fields for name, fields in self.calls if name == method]


class World:
    """An adapter, what it calls, and what it takes in."""

    def __init__(self, recorded: Recorded, url: str, view: View) -> None:
        self.recorded = recorded
        self.clock = HandClock(1000.0)
        self.inbox = Inbox()
        self.shelf = Shelf()
        self.url = url
        api = Api(Secret("xoxb-1"), url, Secret("xapp-1"))
        self.slack = Slack("main", api, self.shelf, view=view, ticks=self.clock)

    async def hears(self, event: Json, id: str = "Ev1") -> None:
        payload = {"type": "event_callback", "event_id": id, "event": event}
        await self.slack.take("events_api", payload, self.inbox.accept)


@pytest.fixture
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    recorded, listener = Recorded(), Listener("127.0.0.1", 0)
    made = World(recorded, listener.url, getattr(request, "param", View.CHAT))
    async with serving(Mounted(recorded), listener, 0.1):
        yield made
        await made.slack.close()


def said(text: str, **more: Any) -> Json:
    return {"type": "message", "channel": CHANNEL, "user": "U1", "text": text, "ts": REPLY, **more}


async def test_a_post_that_comes_as_a_message_and_as_a_mention_is_one(world: World) -> None:
    await world.hears(said("<@U0BOT> /new <@U2> &lt;b&gt;"), "Ev1")
    await world.hears(said("<@U0BOT> /new <@U2> &lt;b&gt;", type="app_mention"), "Ev2")
    [arrival] = world.inbox.arrivals
    assert (plain_text(arrival.parts), arrival.mentions_agent) == ("/new @Ann <b>", True)
    assert (arrival.place.kind, arrival.place.name, arrival.place.topic) == (Kind.GROUP, "club", "Plans")
    assert len(world.inbox.duplicates) == 1


async def test_only_people_are_heard(world: World) -> None:
    for event in (
        said("me", user="U0BOT"),
        said("another", bot_id="B2"),
        said("a hook", subtype="bot_message", user=None),
        said("Ann joined", subtype="channel_join"),
        said("Slackbot", user="USLACKBOT"),
        said("", subtype="message_changed", message=said("a bot's", bot_id="B2"), previous_message=said("before")),
        said("", subtype="message_changed", message=said("a link"), previous_message=said("a link")),
        {"type": "reaction_added", "user": "U1"},
        {"type": "channel_rename", "channel": {"id": CHANNEL, "name": "club"}},
    ):
        await world.hears(event)
    assert (world.inbox.arrivals, world.inbox.letters) == ([], [])


async def test_manners_in_threads(world: World) -> None:
    await world.hears(said("to you", thread_ts=ROOT, parent_user_id="U0BOT"), "Ev1")
    await world.hears(said("to Ben", thread_ts=ROOT, parent_user_id="U2", ts="1782234988.000001"), "Ev2")
    assert [arrival.mentions_agent for arrival in world.inbox.arrivals] == [True, False]
    assert {arrival.place.address.thread for arrival in world.inbox.arrivals} == {ROOT}


async def test_commands_and_buttons(world: World) -> None:
    command = {"command": "/segue", "text": "resume Tea", "user_id": "U1", "channel_id": DM, "trigger_id": "1.2"}
    await world.slack.take("slash_commands", command, world.inbox.accept)
    await world.slack.take("slash_commands", {**command, "command": "/new", "text": ""}, world.inbox.accept)
    await world.slack.take("slash_commands", {**command, "text": " ", "trigger_id": "1.3"}, world.inbox.accept)
    assert world.inbox.texts == ["/resume Tea", "/help"]
    assert len(world.inbox.duplicates) == 1, "a command is known by its trigger"
    press = {
        "type": "block_actions",
        "user": {"id": "U1"},
        "channel": {"id": DM},
        "container": {"message_ts": REPLY, "thread_ts": ROOT},
        "message": {"ts": REPLY, "text": "Sure?", "thread_ts": ROOT},
        "actions": [{"value": "/yes", "action_ts": "3"}],
        "trigger_id": "1.4",
    }
    heard = await world.slack.take("interactive", press, world.inbox.accept)
    pressed = world.inbox.arrivals[-1]
    assert (pressed.pressed, pressed.place.address.thread) == (Pressed(REPLY, "/yes"), ROOT)
    assert heard is not None
    await world.slack.let_go(heard)
    [update] = world.recorded.called("chat.update")
    assert (update["text"], update["attachments"]) == ("Sure?", "[]"), "a button that was used is still there"


@pytest.mark.parametrize("seen_by", ["one", "all"])
async def test_a_card_that_one_person_sees_goes_when_it_is_answered(world: World, seen_by: str) -> None:
    press = {
        "type": "block_actions",
        "user": {"id": "U1"},
        "channel": {"id": CHANNEL},
        "container": {"message_ts": REPLY, "is_ephemeral": seen_by == "one"},
        "actions": [{"value": "/yes"}],
        "trigger_id": "1.4",
        "response_url": f"{world.url}/actions/1",
    }
    heard = await world.slack.take("interactive", press, world.inbox.accept)
    assert heard is not None
    await world.slack.let_go(heard)
    told = [json.loads(body) for path, body in world.recorded.posted if path == "/actions/1"]
    assert told == ([{"delete_original": True}] if seen_by == "one" else []), "others may still answer it"
    elsewhere = msgspec.structs.replace(decode(press, Press, "Slack"), response_url="https://evil.example/actions/1")
    await world.slack.let_go(msgspec.structs.replace(heard, press=elsewhere))
    assert not world.recorded.called("chat.update")


async def test_nobody_waits_for_a_name(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.adapters.shared.lookups._PATIENCE", 0.02)
    world.recorded.waits["users.info"] = asyncio.Event()
    await world.hears(said("hello", channel=DM), "Ev1")
    world.recorded.waits.pop("users.info").set()
    monkeypatch.setattr("segue.adapters.shared.lookups._PATIENCE", 60.0)
    world.clock.passes(31.0)
    await world.hears(said("again", channel=DM, ts="1782234988.000001"), "Ev2")
    assert [arrival.speaker.name for arrival in world.inbox.arrivals] == ["U1", "Ann"]


@pytest.mark.parametrize("world", [View.AGENT], indirect=True)
async def test_the_agent_view(world: World) -> None:
    await world.hears(said("about tea", channel=DM, ts=ROOT), "Ev1")
    stopped = {"type": "agent_session_stopped", "channel": DM, "user": "U1", "thread_ts": ROOT, "event_ts": REPLY}
    await world.hears({**stopped, "streaming_message_ts": []}, "Ev2")
    titled = {**stopped, "type": "agent_session_title_changed", "title": "Tea & milk", "previous_title": "Tea"}
    await world.hears(titled, "Ev3")
    assert world.inbox.texts == ["about tea", "/stop", "/title Tea & milk"]
    there = Address("slack", "main", "", DM, ROOT)
    assert {arrival.place.address for arrival in world.inbox.arrivals} == {there}
    await world.slack.typing(there)
    await world.slack.typing(there)
    await world.slack.send(a_delivery(there, "with milk"))
    statuses = world.recorded.called("agents.sessions.setStatus")
    assert [(call["thread_ts"], call["status"]) for call in statuses] == [(ROOT, "processing"), (ROOT, "active")]
    world.clock.passes(2.0)
    opened = await world.slack.open_thread(Address("slack", "main", "", DM), "Tea", "k")
    last = world.recorded.called("agents.sessions.setStatus")[-1]
    assert (last["thread_ts"], last["title"], opened.thread) == ("1.000001", "Tea", "1.000001")


def _placeholder(thread: Address, answered: str) -> Delivery:
    return msgspec.structs.replace(a_delivery(thread, ""), attempt=0, answers=(answered,)).placeholder


@pytest.mark.parametrize("world", [View.AGENT], indirect=True)
@pytest.mark.parametrize(
    ("event", "team"), [({}, "T1"), ({"team": "T2"}, "T2"), ({"team": "T2", "user_team": "T3"}, "T3")]
)
async def test_in_a_channel_a_stream_is_for_whoever_is_answered(world: World, event: Json, team: str) -> None:
    asked = said("tell me", thread_ts=ROOT, **event)
    payload = {"type": "event_callback", "event_id": "Ev1", "team_id": "T1", "event": asked}
    await world.slack.take("events_api", payload, world.inbox.accept)
    at = Address("slack", "main", "", CHANNEL, ROOT)
    await world.slack.send(_placeholder(at, "1782234000.000001"))
    world.clock.passes(2.0)
    await world.slack.send(_placeholder(AT, REPLY))
    world.clock.passes(2.0)
    assert not world.recorded.called("chat.startStream"), "nobody is known, or it is in no thread"
    await world.slack.send(_placeholder(at, REPLY))
    [begun] = world.recorded.called("chat.startStream")
    assert begun == {
        "channel": CHANNEL,
        "thread_ts": ROOT,
        "task_display_mode": "plan",
        "recipient_user_id": "U1",
        "recipient_team_id": team,
    }


@pytest.mark.parametrize("world", [View.AGENT], indirect=True)
async def test_what_slack_streams_to_one_person_it_may_refuse_another(world: World) -> None:
    at = Address("slack", "main", "", CHANNEL, ROOT)
    await world.hears(said("one", user="U1", team="T1", thread_ts=ROOT, ts="1782234988.000001"), "Ev1")
    await world.hears(said("two", user="U2", team="T2", thread_ts=ROOT, ts="1782234988.000002"), "Ev2")
    world.recorded.answers["chat.startStream"] = {"ok": False, "error": "team_not_found"}
    for _ in range(2):
        await world.slack.send(_placeholder(at, "1782234988.000001"))
        world.clock.passes(2.0)
    del world.recorded.answers["chat.startStream"]
    assert (len(world.recorded.called("chat.startStream")), len(world.recorded.called("chat.postMessage"))) == (1, 2)
    await world.slack.send(_placeholder(at, "1782234988.000002"))
    assert [call["recipient_user_id"] for call in world.recorded.called("chat.startStream")] == ["U1", "U2"]


async def test_the_stream_of_another_app_is_not_taken_for_ones_own(world: World) -> None:
    at = Address("slack", "main", "", CHANNEL, ROOT)
    another = {"ts": "1782234989.000001", "user": "U0OTHER", "bot_id": "B2", "streaming_state": "in_progress"}
    world.recorded.answers["conversations.replies"] = {"messages": [another]}
    assert await world.slack.find(_placeholder(at, REPLY)) is None
    mine = {**another, "ts": "1782234989.000002", "user": "U0BOT"}
    world.recorded.answers["conversations.replies"] = {"messages": [another, mine]}
    assert await world.slack.find(_placeholder(at, REPLY)) == mine["ts"]


async def test_a_deleted_root_of_a_thread_leaves_a_stone_on_slack(world: World) -> None:
    gone = said("This message was deleted.", subtype="tombstone", user="USLACKBOT", ts=ROOT)
    changed = {"type": "message", "subtype": "message_changed", "channel": CHANNEL, "event_ts": REPLY, "message": gone}
    await world.hears({**changed, "previous_message": said("too much", ts=ROOT)})
    [arrival] = world.inbox.arrivals
    assert (arrival.deletes, arrival.parts, arrival.speaker.identity.user) == (ROOT, (), "U1")


async def test_a_file_elsewhere_is_not_shown_the_token(world: World) -> None:
    file = {"id": "F1", "name": "cat.png", "size": 3, "url_private": "https://files.slack.com.evil.example/cat.png"}
    await world.hears(said("look", subtype="file_share", files=[file]))
    [arrival] = world.inbox.arrivals
    assert not any(isinstance(part, File) for part in arrival.parts)
    assert arrival.remarks == ("cat.png wasn't taken in. It isn't kept by Slack.",)


async def test_a_message_that_is_passed_on_is_a_citation(world: World) -> None:
    passed = {"is_share": True, "text": "tea &amp; cake", "author_id": "U2", "author_name": "Ben"}
    await world.hears(said("", attachments=[passed, {"text": "what a link leads to"}]))
    [arrival] = world.inbox.arrivals
    assert (arrival.parts, arrival.cites) == ((), (Citation("tea & cake", "U2", "Ben", Citing.FORWARD),))


async def test_what_cannot_be_read_back_yet_is_read_back_later(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.adapters.shared.background._LATER", 0.0)
    cursor, since = Bookmark("1782234000.000000"), said("before", ts="1782234001.000001")
    intake = Given(world.inbox.accept, cursor)
    world.recorded.answers["users.conversations"] = {"channels": [{"id": CHANNEL}]}
    world.recorded.answers["conversations.history"] = JSONResponse({"ok": False}, 429, {"Retry-After": "1"})
    await world.slack._catch_up(intake)
    await world.slack.keep(intake, 1782239999.0)
    assert cursor.value == "1782234000.000000", "what was missed would never be looked for again"
    read_back = partial(world.slack._catch_up, intake, 60.0)
    later = asyncio.create_task(world.slack._gap.close_later(read_back))
    async with asyncio.timeout(60):
        while len(world.recorded.called("conversations.history")) < 2:  # noqa: ASYNC110 -- the server tells nobody
            await asyncio.sleep(0.01)
    # It asks again by itself once the second is over, and goes on from there.
    world.recorded.answers["conversations.history"] = {"messages": [since]}
    await world.inbox.gets("before")
    later.cancel()
    assert len(world.recorded.called("users.conversations")) == 2
    await world.slack.keep(intake, 1782239999.0)
    assert cursor.value == "1782239939.000000"


async def test_what_cannot_be_read_is_a_letter(world: World) -> None:
    await world.slack.take("something_new", {"a": 1}, world.inbox.accept)
    [letter] = world.inbox.letters
    assert isinstance(letter, Letter)
    assert json.loads(letter.raw) == {"a": 1}


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        ("channel_not_found", SendNever, "channel_not_found"),
        ("message_not_found", MessageGone, "message_not_found"),
        ("ratelimited", SendLater, "patience"),
        ("token_revoked", SendLater, "segue add slack"),
        ("fatal_error", SendUnsure, "fatal_error"),
        ("missing_scope", SendNever, "no scope chat:write"),
    ],
)
async def test_refusals(world: World, error: str, kind: type[Exception], words: str) -> None:
    world.recorded.answers["chat.postMessage"] = {"ok": False, "error": error, "needed": "chat:write"}
    with pytest.raises(kind, match=words):
        await world.slack.send(a_delivery(AT, "hello"))


async def test_what_one_person_is_to_see_comes_in_private_where_slack_refuses_it(world: World) -> None:
    alone = msgspec.structs.replace(a_delivery(Address("slack", "main", "", CHANNEL, ROOT), "It is well."), only="U1")
    world.recorded.answers["chat.postEphemeral"] = {"ok": False, "error": "not_in_channel"}
    assert await world.slack.send(alone) == "1.000001"
    [post] = world.recorded.called("chat.postMessage")
    assert (post["channel"], post["text"], "thread_ts" in post) == ("U1", "It is well.", False)
    world.clock.passes(2.0)
    world.recorded.answers["chat.postEphemeral"] = {"ok": False, "error": "ratelimited"}
    with pytest.raises(SendLater):
        await world.slack.send(alone)
    assert len(world.recorded.called("chat.postMessage")) == 1


async def test_no_more_than_one_message_a_second_in_a_channel(world: World) -> None:
    await world.slack.send(a_delivery(AT, "one"))
    world.clock.passes(-0.5)
    with pytest.raises(SendLater):
        await world.slack.send(a_delivery(AT, "two"))
    await world.slack.send(a_delivery(Address("slack", "main", "", "C2"), "elsewhere"))
    world.clock.passes(2.0)
    world.recorded.answers["chat.postMessage"] = JSONResponse({"ok": False}, 429, {"Retry-After": "7"})
    with pytest.raises(SendLater) as later:
        await world.slack.send(a_delivery(AT, "three"))
    assert later.value.seconds == 7
    del world.recorded.answers["chat.postMessage"]
    world.clock.passes(5.0)
    with pytest.raises(SendLater):
        await world.slack.send(a_delivery(AT, "four"))
    assert len(world.recorded.called("chat.postMessage")) == 3, "it called though Slack had asked for patience"


async def test_a_file_goes_out_with_its_key(world: World) -> None:
    kept = await world.shelf.keep("cat.png", "image/png", _bytes())
    world.recorded.answers["files.getUploadURLExternal"] = {"upload_url": f"{world.url}/upload", "file_id": "F1"}
    shared = {"id": "F1", "permalink": "https://club.slack.com/files/U0BOT/F1/cat.png"}
    world.recorded.answers["files.completeUploadExternal"] = {"files": [shared]}
    delivery = msgspec.structs.replace(a_delivery(AT, "a cat"), file=kept)
    await world.slack.send(delivery)
    [post] = world.recorded.called("chat.postMessage")
    assert post["text"] == "a cat\n<https://club.slack.com/files/U0BOT/F1/cat.png|cat.png>"
    assert json.loads(post["metadata"])["event_payload"] == {"key": delivery.key}


def test_a_file_that_goes_out_is_no_larger_than_one_call_can_take() -> None:
    megabits_a_second = 8 * Slack.largest_file / 1e6 / SLOWEST
    assert megabits_a_second < 10, "it would break off each time, after it filled the memory"


async def _bytes() -> AsyncIterator[bytes]:
    yield b"miau"


def test_markdown_as_slack_reads_it() -> None:
    source = "# Tea\n\n**hot** *or* ~~cold~~ `a<b` [shop](https://example.org/?a=1&b=2)\n\n- one\n- two\n\n> wise"
    want = "*Tea*\n\n*hot* _or_ ~cold~ `a&lt;b` <https://example.org/?a=1&amp;b=2|shop>\n\n• one\n• two\n\n> wise"
    assert render(source) == want
    assert render("| a | b |\n| --- | --- |\n| 1 | `x` |") == "```\na | b\n1 | x\n```"
    assert render("```py\nx = '<!channel>'\n```") == "```\nx = '&lt;!channel&gt;'\n```"


def test_everyone_is_not_called(world: World) -> None:
    loud = "<!channel> <!here|here> <!everyone> <!subteam^S1> <#C1> <mailto:a@evil.example>"
    assert "<" not in render(loud).replace("<mailto:a@evil.example>", "").replace("<mailto:a@evil.example|", "")
    assert render("[x](https://a.example) <@U123>") == "<https://a.example|x> <@U123>"
    assert world.slack.mention("U123") == "<@U123>"
    assert render("[<!channel>](https://a.example)") == "<https://a.example|&lt;!channel&gt;>"


def test_what_fits_is_counted_after_rendering() -> None:
    assert fits("x" * 4000)
    assert not fits("x" * 4001)
    assert not fits("&" * 801)


def test_words_of_people_without_slacks_marks() -> None:
    typed = "<@U1> in <#C1|club>: <https://a.example/x> <https://a.example|here> <!here> <!date^1^x|today> &amp;lt;"
    assert (
        plain(typed, {"U1": "Ann"}) == "@Ann in #club: https://a.example/x [here](https://a.example) @here today &lt;"
    )


def test_the_page_shows_the_manifest_that_is_offered() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "slack.md").read_text()
    assert json.loads(page.partition("```json")[2].partition("```")[0]) == MANIFEST


def test_an_account_says_what_is_missing() -> None:
    good = Secret("xoxb-1")
    for token, app_token, field in (
        (Secret("1:x"), good, "token"),
        (good, Secret(""), "app_token"),
        (good, good, "app_token"),
    ):
        with pytest.raises(Invalid, match=f"^{field}"):
            SlackAccount(token, app_token)


@pytest.mark.parametrize(
    ("more", "begins"),
    [("", None), ('view = "agent"', DmThreads.FRESH), ('view = "agent"\ndm_threads = "fork"', DmThreads.FORK)],
)
def test_threads_of_the_agent_view_begin_with_nothing(tmp_path: Path, more: str, begins: DmThreads | None) -> None:
    table = f'[slack.main]\ntoken = "env:BOT"\napp_token = "env:APP"\npublic = true\n{more}\n'
    (tmp_path / "segue.toml").write_text(table)
    config = load(tmp_path / "segue.toml", {"BOT": "xoxb-1", "APP": "xapp-1"})
    assert config.gateway.accounts["slack", "main"].dm_threads is begins


async def test_adding_names_the_scope_that_is_missing(world: World) -> None:
    answers = {"token": "xoxb-1", "app_token": "xapp-1", "view": "agent", "api": world.slack._api.files}
    who = {"ok": True, **world.recorded.answers["auth.test"]}
    world.recorded.answers["auth.test"] = JSONResponse(who, headers={"X-OAuth-Scopes": "chat:write,im:history"})
    with pytest.raises(Invalid, match=r"the app has no scope .*channels:history"):
        await SlackAccount.added(answers)
    world.recorded.answers["auth.test"] = who
    world.recorded.answers["apps.connections.open"] = {"ok": False, "error": "not_allowed_token_type"}
    with pytest.raises(Invalid, match="connections:write"):
        await SlackAccount.added(answers)
    del world.recorded.answers["apps.connections.open"]
    added = await SlackAccount.added(answers)
    assert (added.name, added.keys["view"], sorted(added.secrets)) == ("segue", "agent", ["app_token", "token"])
