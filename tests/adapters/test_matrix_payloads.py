"""What a homeserver may tell, as the specification of Matrix has it, and what it may not, served as recorded."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from segue.adapters.matrix import Matrix, MatrixAccount, ciphers, homeserver
from segue.adapters.matrix.content import attached, edited, message
from segue.adapters.matrix.events import Event
from segue.adapters.matrix.homeserver import Homeserver
from segue.adapters.matrix.rooms import Rooms
from segue.adapters.shared.rates import Bucket
from segue.core.contracts.lockers import Thing
from segue.core.lanes import Address, Identity, Kind
from segue.core.messages import Citation, Delivery, File, Text, plain_text
from segue.core.values import Secret, converted
from segue.errors import Disconnected, SendLater, SendNever
from segue.runtime.files.folder import Folder
from segue.runtime.server.listeners import Listener, serving
from segue.testing import Chest, HandClock
from segue.testing.contracts.base import a_delivery
from segue.testing.harness import Bookmark, Given
from segue.testing.inbox import Inbox

Json = dict[str, Any]
BOT, ANN, BEN = "@segue:example.org:8448", "@ann:example.org:8448", "@ben:other.example"
ROOM = "!old/room:example.org:8448"
HANGS = 504
AT = Address("matrix", "main", "example.org:8448", ROOM)


class Recorded:
    """A homeserver that tells one batch, and then that it is over."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.elsewhere: Json = {}
        """Rooms that it is invited to, or out of."""
        self.known: dict[str, Json] = {}
        self.missed = ""
        """The place from which a room's timeline has a gap."""
        self.since = "before"
        """The place that it tells the batch after."""
        self.troubled: dict[str, int] = {}
        """Events that it answers with an error, or never."""
        self.answer: Response | None = None
        self.asked: list[str] = []
        """What was asked of homeservers that are gone."""
        self.open = False
        """Whether they are back."""
        self.state = [
            member(BOT, "Segue"),
            member(ANN, "Ann"),
            member(BEN, None),
            {**event({"topic": ["no text"]}, "m.room.topic"), "state_key": ""},
            {**event({"name": "Plans"}, "m.room.name"), "state_key": ""},
            {"type": "m.room.create"},
        ]

    def app(self) -> Starlette:
        base = "/_matrix/client/v3"
        return Starlette(
            routes=[
                Route(f"{base}/account/whoami", lambda _: JSONResponse({"user_id": BOT})),
                Route(f"{base}/joined_rooms", lambda _: JSONResponse({"joined_rooms": [ROOM]})),
                Route(f"{base}/sync", self._sync),
                Route(f"{base}/rooms/{{room:path}}/state", lambda _: JSONResponse(self.state)),
                Route(f"{base}/rooms/{{room:path}}/event/{{id:path}}", self._event),
                Route(f"{base}/rooms/{{room:path}}/send/m.room.message/{{key}}", self._send, methods=["PUT"]),
                Route(f"{base}/join/{{room:path}}", self._gone, methods=["POST"]),
                Route(f"{base}/rooms/{{room:path}}/messages", self._gone),
                Route("/_matrix/client/v1/{file:path}", self._gone),
                Route(f"{base}/user/{{user:path}}/account_data/m.direct", self._account_data, methods=["GET", "PUT"]),
            ]
        )

    async def _sync(self, request: Request) -> Response:
        if self.answer is not None:
            return self.answer
        if request.query_params["since"] != self.since:
            return JSONResponse({"errcode": "M_UNKNOWN_TOKEN", "error": "over"}, 401)
        gap = {"limited": bool(self.missed), "prev_batch": self.missed}
        joined = {ROOM: {"timeline": {"events": self.events, **gap}}}
        told = {"next_batch": "after", "rooms": {"join": joined, **self.elsewhere}}
        return Response(json.dumps(told), media_type="application/json")

    async def _event(self, request: Request) -> Response:
        if trouble := self.troubled.get(request.path_params["id"]):
            await asyncio.sleep(60 if trouble == HANGS else 0)
            return JSONResponse({"errcode": "M_UNKNOWN", "error": "?"}, trouble)
        found = self.known.get(request.path_params["id"])
        here = found and found.get("room_id", ROOM) == request.path_params["room"]
        return JSONResponse(found) if here else JSONResponse({"errcode": "M_NOT_FOUND", "error": "?"}, 404)

    async def _gone(self, request: Request) -> Response:
        self.asked.append(request.url.path.rpartition("/")[2])
        if self.open:
            return JSONResponse({})
        missing = self.asked[-1] == "!nowhere"
        return JSONResponse({"errcode": "M_UNKNOWN", "error": "No server answers"}, 404 if missing else 502)

    async def _account_data(self, _: Request) -> Response:
        return JSONResponse({})

    async def _send(self, _: Request) -> Response:
        return self.answer or JSONResponse({"event_id": "$sent"})


def event(content: Any, kind: str = "m.room.message", sender: str = ANN, id: str = "$1") -> Json:
    return {"type": kind, "sender": sender, "event_id": id, "content": content, "origin_server_ts": 1_800_000_000_500}


def member(user: str, name: str | None) -> Json:
    return {**event({"membership": "join", "displayname": name}, "m.room.member", user), "state_key": user}


def text(body: Any, **more: Any) -> Json:
    return {"msgtype": "m.text", "body": body, **more}


class Line:
    """The adapter, connected to what was recorded."""

    def __init__(self, server: Recorded, adapter: Matrix) -> None:
        self.server = server
        self.adapter = adapter
        self.cursor = Bookmark("before")
        self.chest = Chest()
        adapter.remember(self.chest)

    async def hears(self, *events: Any) -> Inbox:
        self.server.events = list(events)
        inbox = Inbox()
        with pytest.raises(Disconnected, match="doesn't know the access token"):
            await self.adapter.run(Given(inbox.accept, self.cursor))
        assert self.cursor.value == "after"
        self.cursor.value = "before"
        return inbox


@pytest.fixture
async def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Line]:
    # What was recorded has no keys in it.
    monkeypatch.setattr(ciphers, "find_spec", lambda _: None)
    server, listener = Recorded(), Listener("127.0.0.1", 0)
    async with serving(server.app(), listener):
        adapter = MatrixAccount(listener.url, BOT, Secret("t")).adapter("main", Folder(tmp_path))
        yield Line(server, adapter)
        await adapter.close()


async def test_ids_with_two_colons_and_a_slash_are_kept_whole(line: Line) -> None:
    [arrival] = (await line.hears(event(text("hello")))).arrivals
    assert arrival.place.address == AT
    assert (arrival.place.kind, arrival.place.name, arrival.place.topic) == (Kind.GROUP, "Plans", "")
    assert arrival.speaker.identity == Identity("matrix", "main", ANN)
    assert (arrival.speaker.name, arrival.message, arrival.at) == ("Ann", "$1", 1_800_000_000.5)


@pytest.mark.parametrize(
    "raw",
    [
        7,
        "an event",
        None,
        {},
        {"type": "m.room.message"},
        {**event(text("x")), "sender": None},
        {**event(text("x")), "event_id": 5},
        event(None),
        event({}),
        event({"msgtype": "m.text"}),
        event(text(7)),
        event(text(None)),
        event({"msgtype": ["m.text"], "body": "x"}),
        event(text("x", **{"m.relates_to": "y"})),
        event(text("x", **{"m.mentions": {"user_ids": [5]}})),
        event(text("x", formatted_body=7)),
        event({"msgtype": "m.image", "body": "x", "url": 5}),
        event(text("x\ud800", formatted_body=7)),
        {**event(text("x")), "origin_server_ts": "\ud800"},
        {**event({"replacement_room": "!\ud800:x"}, "m.room.tombstone"), "state_key": ""},
    ],
)
async def test_what_cannot_be_understood_is_kept_and_stops_nothing(line: Line, raw: Any) -> None:
    inbox = await line.hears(raw, event(text("hello"), id="$2"))
    assert inbox.texts == ["hello"]
    [letter] = inbox.letters
    assert json.loads(letter.raw) == raw


@pytest.mark.parametrize(
    "raw",
    [
        {**event({}), "unsigned": {"redacted_because": {"type": "m.room.redaction"}}},
        event({"msgtype": "m.notice", "body": "beep"}),
        event(text("mine"), sender=BOT),
        event({"m.relates_to": {"rel_type": "m.annotation", "event_id": "$0", "key": "+1"}}, "m.reaction"),
        event(text("* x", **{"m.relates_to": {"rel_type": "m.replace", "event_id": "$gone"}})),
        member("@cay:example.org", "Cay"),
    ],
)
async def test_what_is_not_said_to_anybody_is_neither(line: Line, raw: Any) -> None:
    inbox = await line.hears(raw, event(text("hello"), id="$2"))
    assert (inbox.texts, inbox.letters) == (["hello"], [])


@pytest.mark.parametrize(
    "batch",
    [
        {"rooms": 7},
        {"rooms": {"join": [ROOM]}},
        {"rooms": {"join": {ROOM: {"timeline": "all"}}, "invite": {"!i": 7}, "leave": {"!l": {"timeline": []}}}},
        {"rooms": {"join": {ROOM: {"timeline": {"events": {}, "limited": True, "prev_batch": 7}, "state": []}}}},
        {"account_data": {"events": [7, {"type": []}]}},
    ],
    ids=ascii,
)
async def test_a_batch_that_is_no_batch_is_passed_by(line: Line, batch: Json) -> None:
    line.server.answer = JSONResponse(batch | {"next_batch": "after"})
    with pytest.raises(Disconnected, match="that is all"):
        await line.adapter.run(Given(Inbox().accept, Ends(line.cursor)))
    assert line.cursor.value == "after"


async def test_a_join_rule_that_is_no_word_opens_the_room(line: Line) -> None:
    line.server.state.append(state("m.room.join_rules", join_rule=["invite"]))
    inbox = await line.hears(event(text("hello")))
    assert (inbox.texts, inbox.letters) == (["hello"], [])


class Ends:
    """A cursor with which an adapter's life ends after one batch."""

    def __init__(self, kept: Bookmark) -> None:
        self._kept = kept

    async def read(self) -> str:
        return await self._kept.read()

    async def keep(self, value: str) -> None:
        await self._kept.keep(value)
        raise Disconnected("that is all")


def state(kind: str, **content: Any) -> Json:
    return {**event(content, kind), "state_key": ""}


async def test_a_room_is_called_what_it_is_called_by_now(line: Line) -> None:
    renamed = (state("m.room.name", name="Cake"), state("m.room.topic", topic="with cream"))
    first, second = (await line.hears(event(text("one")), *renamed, event(text("two"), id="$2"))).arrivals
    assert (first.place.name, second.place.name, second.place.topic) == ("Plans", "Cake", "with cream")


@pytest.mark.parametrize(
    ("rule", "kind"),
    [("invite", Kind.DM), ("knock", Kind.DM), ("public", Kind.GROUP), ("restricted", Kind.GROUP), (None, Kind.GROUP)],
)
async def test_two_in_a_room_that_others_may_enter_are_no_private_chat(line: Line, rule: Any, kind: Kind) -> None:
    line.server.state = [member(BOT, "Segue"), member(ANN, "Ann"), state("m.room.join_rules", join_rule=rule)]
    [arrival] = (await line.hears(event(text("hello")))).arrivals
    assert arrival.place.kind is kind


class Circle(Homeserver):
    """Two rooms, each of which says that it stands for the other."""

    async def state(self, room: str) -> list[Json]:
        other = await self.goes_on(room)
        return [
            state("m.room.create", predecessor={"room_id": other}),
            state("m.room.tombstone", replacement_room=other),
        ]

    async def goes_on(self, room: str) -> str:
        return "!b" if room == "!a" else "!a"

    async def private_chats(self) -> frozenset[str]:
        return frozenset()


class Hasty(Homeserver):
    """A room into which Ben comes just after it was told who is in it."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1", BOT)
        self.rooms = Rooms(self)
        self.told = [member(BOT, "Segue"), member(ANN, "Ann")]

    async def state(self, room: str) -> list[Json]:
        told = list(self.told)
        if len(told) == 2:
            self.told.append(member(BEN, "Ben"))
            self.rooms.heed(room, converted(self.told[-1], Event))
        return told

    async def private_chats(self) -> frozenset[str]:
        return frozenset()


async def test_whoever_comes_into_a_room_while_it_is_looked_up_is_there() -> None:
    rooms = Hasty().rooms
    await rooms.get(ROOM)
    assert (await rooms.get(ROOM)).kind is Kind.GROUP


async def test_rooms_that_go_on_in_a_circle_lead_somewhere() -> None:
    assert await Rooms(Circle("http://127.0.0.1:1", BOT)).now("!a") == "!b"


@pytest.mark.parametrize("trouble", [500, 502, HANGS])
async def test_a_reply_to_what_the_homeserver_never_tells_is_taken_in_without_it(
    line: Line, trouble: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(homeserver, "_SLOWEST_EVENT", 0.05)
    line.server.troubled = {"$0": trouble, "$root": trouble}
    replies = {"m.relates_to": {"rel_type": "m.thread", "event_id": "$root", "m.in_reply_to": {"event_id": "$0"}}}
    line.server.events = [event(text("look", **replies))]
    for _ in range(4):
        with pytest.raises(Disconnected):
            await line.adapter.run(Given(Inbox().accept, line.cursor))
        assert line.cursor.value == "before", "what may come is waited for"
    inbox = await line.hears(*line.server.events, event(text("hello"), id="$2"))
    assert inbox.texts == ["look", "hello"]
    assert inbox.letters == []


async def test_an_edit_of_what_the_homeserver_never_tells_is_a_letter(line: Line) -> None:
    line.server.troubled = {"$0": 500}
    line.server.events = [event({**text("* no"), "m.relates_to": {"rel_type": "m.replace", "event_id": "$0"}})]
    for _ in range(2):
        with pytest.raises(Disconnected):
            await line.adapter.run(Given(Inbox().accept, line.cursor))
        assert line.cursor.value == "before"
    inbox = await line.hears(*line.server.events, event(text("hello"), id="$2"))
    assert (inbox.texts, [letter.kind for letter in inbox.letters]) == (["hello"], ["Invalid"])


async def test_a_room_whose_past_the_homeserver_never_tells_holds_up_nobody(line: Line) -> None:
    line.server.missed = "gap"
    line.server.events = [event(text("hello"))]
    for _ in range(2):
        with pytest.raises(Disconnected):
            await line.adapter.run(Given(Inbox().accept, line.cursor))
        assert line.cursor.value == "before", "what may come is waited for"
    assert (await line.hears(*line.server.events)).texts == ["hello"]
    line.server.since = line.cursor.value = "days later"
    with pytest.raises(Disconnected):
        await line.adapter.run(Given(Inbox().accept, line.cursor))
    assert line.cursor.value == "days later", "another gap isn't waited for, since there was one before"


async def test_an_event_that_breaks_its_reader_is_a_letter(line: Line) -> None:
    inbox = await line.hears({**event(text("late")), "origin_server_ts": 10**400}, event(text("hello"), id="$2"))
    assert inbox.texts == ["hello"]
    assert len(inbox.letters) == 1


@pytest.mark.parametrize("predecessor", [None, "!x", {}, {"room_id": 7}, {"room_id": ROOM}])
@pytest.mark.parametrize("replacement", [None, 7, ROOM, "!nowhere"])
async def test_what_a_room_says_of_others_may_be_nonsense(line: Line, predecessor: Any, replacement: Any) -> None:
    line.server.state += [
        state("m.room.create", predecessor=predecessor),
        state("m.room.tombstone", replacement_room=replacement),
    ]
    gone = state("m.room.tombstone", replacement_room=replacement)
    [arrival] = (await line.hears(gone, event(text("hello"), id="$2"))).arrivals
    assert arrival.chat_aliases == ()
    assert await line.adapter.send(a_delivery(AT, "hello")) == "$sent"


@pytest.mark.parametrize(
    "garbage",
    [
        7,
        None,
        {"type": "m.room.create", "sender": ANN, "state_key": "", "content": None},
        {"type": "m.room.create", "sender": ANN, "state_key": "", "content": {"predecessor": [ROOM]}},
        {"type": "m.room.member", "sender": ANN, "state_key": BOT, "content": []},
        {"type": "m.room.member", "sender": None, "state_key": BOT, "content": {}},
    ],
)
async def test_what_another_homeserver_says_of_its_rooms_stops_nothing(
    line: Line, garbage: Any, caplog: pytest.LogCaptureFixture
) -> None:
    line.server.state.pop()
    line.server.elsewhere = {
        "invite": {"!there": {"invite_state": {"events": [garbage]}}},
        "leave": {"!gone": {"timeline": {"events": [garbage]}}},
    }
    assert (await line.hears(event(text("hello")))).texts == ["hello"]
    clear = isinstance(garbage, dict) and isinstance(garbage["content"], dict) and garbage["sender"]
    assert caplog.text.count("can't be understood") == (0 if clear else 2)


@pytest.mark.parametrize(
    "url", ["mxc://../config", "mxc://./..", "mxc://a/b/c", "mxc://a/..", "https://a/b", "mxc://a/"]
)
async def test_a_file_elsewhere_than_in_the_media_store_is_not_asked_for(line: Line, url: str) -> None:
    inbox = await line.hears(event({"msgtype": "m.file", "body": "x", "url": url}))
    assert [one.remarks for one in inbox.said] == [("x wasn't taken in. Its address is none of a media store.",)]
    assert line.server.asked == []


async def test_homeservers_that_are_gone_keep_nobody_waiting_for_ever(line: Line) -> None:
    line.server.events = [event({"msgtype": "m.image", "body": "cat.png", "url": "mxc://other.example/cat"})]
    for _ in range(2):
        with pytest.raises(Disconnected):
            await line.adapter.run(Given(Inbox().accept, line.cursor))
        assert line.cursor.value == "before", "what may come is waited for"
    inbox = await line.hears(*line.server.events, event(text("hello"), id="$2"))
    assert line.server.asked == ["cat"] * 3
    assert [one.remarks for one in inbox.said] == [
        ("cat.png wasn't taken in. The platform doesn't give it.",),
        (),
    ]
    assert inbox.texts[-1] == "hello"


def asked_into(room: str) -> Json:
    asks = {"type": "m.room.member", "sender": BEN, "state_key": BOT, "content": {"is_direct": True}}
    return {"invite": {room: {"invite_state": {"events": [asks]}}}}


def hastened(line: Line, **changes: float) -> None:
    """Let time pass for the invitation that waits."""
    [(name, thing)] = line.chest.things.items()
    line.chest.things[name] = Thing(json.dumps(json.loads(thing.value) | changes), thing.version)


@pytest.mark.parametrize("room", ["!gone", "!nowhere"])
async def test_an_invitation_that_cannot_be_followed_is_tried_again_for_days_and_named(
    line: Line, room: str, caplog: pytest.LogCaptureFixture
) -> None:
    line.server.elsewhere = asked_into(room)
    assert (await line.hears(event(text("hello")))).texts == ["hello"], "somebody waited for it"
    [trouble] = line.adapter.troubles
    assert trouble.startswith(f"it can't join {room}, to which {BEN} asked it, and tries again for a week: ")
    line.server.elsewhere = {}
    await line.hears()
    assert line.server.asked == [room], "it was tried again at once"
    for days in range(6):
        hastened(line, due=0.0, since=time.time() - days * 86400)
        await line.hears()
        assert line.adapter.troubles == [trouble]
    assert line.server.asked == [room] * 7
    assert json.loads(line.chest.things[f"invitation/{room}"].value)["due"] < time.time() + 7 * 3600
    hastened(line, due=0.0, since=time.time() - 8 * 86400)
    await line.hears()
    assert (line.adapter.troubles, line.chest.things) == ([], {})
    assert caplog.text.count("it can't join") == 2, "the log has one line when it begins, and one when it is given up"


async def test_an_invitation_that_waits_is_followed_when_it_can_be_and_forgotten_when_it_is_withdrawn(
    line: Line,
) -> None:
    for over in ("open", "withdrawn"):
        line.server.elsewhere = asked_into("!gone")
        await line.hears()
        assert line.adapter.troubles
        hastened(line, due=0.0)
        line.server.elsewhere = {"leave": {"!gone": {}}} if over == "withdrawn" else {}
        line.server.open = over == "open"
        await line.hears()
        assert (line.adapter.troubles, line.chest.things) == ([], {})
        line.server.open = False


@pytest.mark.parametrize(
    "content",
    [message("@room come"), edited("$1", "@room come"), attached(File("@room", "text/plain", "x"), "mxc://a/b")],
)
def test_everybody_is_called_by_nothing_that_it_says(content: Json) -> None:
    assert content["m.mentions"] == {}
    assert content.get("m.new_content", {"m.mentions": {}})["m.mentions"] == {}


@pytest.mark.parametrize("empty", ["m.relates_to", "m.mentions", "m.new_content", "formatted_body", "info", "url"])
async def test_null_is_nothing(line: Line, empty: str) -> None:
    assert (await line.hears(event(text("hello", **{empty: None})))).texts == ["hello"]


async def test_what_older_clients_repeat_of_the_quoted_message_is_left_out(line: Line) -> None:
    body = f"> <{BEN}> what do\n> you think?\n\nI think so"
    [arrival] = (
        await line.hears(event(text(body, **{"m.relates_to": {"m.in_reply_to": {"event_id": "$0"}}})))
    ).arrivals
    assert (plain_text(arrival.parts), arrival.quotes) == ("I think so", "$0")
    [arrival] = (await line.hears(event(text(body)))).arrivals
    assert plain_text(arrival.parts) == body, "what somebody cites by hand is theirs"


def replying(to: str) -> Json:
    return {"m.relates_to": {"m.in_reply_to": {"event_id": to}}}


async def test_what_somebody_else_said_goes_with_an_answer_to_it(line: Line) -> None:
    line.server.known = {
        "$bens": event(text("It rains\nall day"), sender=BEN),
        "$mine": event(text("I know"), sender=BOT),
        "$gone": event({}, sender=BEN),
    }
    said = [("really?", "$bens"), ("/rewind", "$bens"), ("really?", "$mine"), ("really?", "$gone")]
    inbox = await line.hears(*(event(text(words, **replying(to)), id=f"${n}") for n, (words, to) in enumerate(said)))
    assert inbox.texts == ["really?", "/rewind", "really?", "really?"]
    bens = (Citation("It rains\nall day", BEN),)
    assert [tuple(msgspec.structs.replace(one, name="") for one in a.cites) for a in inbox.arrivals] == [
        bens,
        bens,
        (),
        (),
    ]
    assert [(arrival.quotes, arrival.mentions_agent) for arrival in inbox.arrivals] == [
        (to, to == "$mine") for _, to in said
    ]


async def test_what_was_said_elsewhere_goes_with_no_answer(line: Line) -> None:
    line.server.known = {"$bens": event(text("for Ann alone"), sender=BEN)}
    answers = event(text("really?", **replying("$bens")))
    forger = {"timeline": {"events": [event(text("tell me", **replying("$bens")), id="$2", sender=BEN)]}}
    line.server.elsewhere = {"join": {ROOM: {"timeline": {"events": [answers]}}, "!elsewhere": forger}}
    here, there = (await line.hears()).arrivals
    assert [one.text for one in here.cites] == ["for Ann alone"]
    assert (there.place.address.chat, there.cites) == ("!elsewhere", ())


def replacing(what: str, words: str) -> Json:
    return text(
        f"* {words}", **{"m.new_content": text(words), "m.relates_to": {"rel_type": "m.replace", "event_id": what}}
    )


@pytest.mark.parametrize("link", [BOT, quote(BOT), ANN])
async def test_whoever_a_link_leads_to_is_meant(line: Line, link: str) -> None:
    shown = f'<a href="https://matrix.to/#/{link}">Somebody</a>'
    [arrival] = (await line.hears(event(text("Somebody, hello", formatted_body=shown)))).arrivals
    assert arrival.mentions_agent is (link != ANN)


async def test_an_edit_of_an_answer_to_the_agent_is_meant_for_it_too(line: Line) -> None:
    line.server.known = {"$mine": event(text("Shall I?"), sender=BOT), "$0": event(text("yse", **replying("$mine")))}
    [arrival] = (await line.hears(event(replacing("$0", "yes")))).arrivals
    assert (arrival.edits, arrival.quotes, arrival.mentions_agent) == ("$0", "", True)


async def test_what_somebody_takes_back_is_a_deletion(line: Line) -> None:
    line.server.known = {
        "$0": event(text("slip", **{"m.relates_to": {"rel_type": "m.thread", "event_id": "$root"}}), id="$0")
    }
    older = event({}, id="$1", kind="m.room.redaction") | {"redacts": "$0"}
    newer = event({"redacts": "$0"}, id="$2", kind="m.room.redaction")
    inbox = await line.hears(older, newer)
    assert [(one.deletes, one.parts, one.place.address.thread) for one in inbox.arrivals] == [("$0", (), "$root")] * 2


async def test_an_edit_has_no_edits(line: Line) -> None:
    line.server.known = {"$0": event(text("one")), "$1": event(replacing("$0", "two"))}
    assert (await line.hears(event(replacing("$1", "three"), id="$2"))).arrivals == []


async def test_a_file_that_is_gone_is_told(line: Line) -> None:
    gone = msgspec.structs.replace(a_delivery(AT, "Here"), file=File("plans.md", "text/markdown", "files/gone"))
    with pytest.raises(SendNever, match=r"plans\.md"):
        await line.adapter.send(gone)


async def test_a_reply_inside_a_thread_is_a_quote_and_its_fallback_is_none(line: Line) -> None:
    thread = {"rel_type": "m.thread", "event_id": "$root", "m.in_reply_to": {"event_id": "$last"}}
    real, fallback = (
        event(text(name, **{"m.relates_to": {**thread, "is_falling_back": falls}}), id=f"${name}")
        for name, falls in (("real", False), ("fallback", True))
    )
    first, second = (await line.hears(real, fallback)).arrivals
    assert (first.quotes, second.quotes) == ("$last", "")
    assert first.place.address.thread == second.place.address.thread == "$root"


async def test_an_edit_is_of_the_thread_that_it_does_not_name(line: Line) -> None:
    thread = {"m.relates_to": {"rel_type": "m.thread", "event_id": "$root"}}
    line.server.known["$0"] = event(text("first", **thread), id="$0")
    new = {"m.new_content": text("second"), "m.relates_to": {"rel_type": "m.replace", "event_id": "$0"}}
    [arrival] = (await line.hears(event(text("* second", **new)))).arrivals
    assert (arrival.edits, arrival.place.address.thread, arrival.parts) == ("$0", "$root", (Text("second"),))
    forged = await line.hears(event(text("* second", **new), sender=BEN))
    assert forged.arrivals == []


@pytest.mark.parametrize(
    "answer",
    [
        Response(status_code=502),
        HTMLResponse("<html>a captive portal</html>"),
        JSONResponse({"errcode": "M_LIMIT_EXCEEDED", "error": "slower", "retry_after_ms": 1500}, 429),
        JSONResponse({"errcode": "M_FORBIDDEN", "error": "no"}, 403),
    ],
)
async def test_a_homeserver_that_is_unwell_is_told_and_its_place_kept(line: Line, answer: Response) -> None:
    line.server.answer = answer
    with pytest.raises(Disconnected):
        await line.adapter.run(Given(Inbox().accept, line.cursor))
    assert line.cursor.value == "before"


async def test_what_the_homeserver_answers_says_what_becomes_of_a_message(line: Line) -> None:
    limited = {"errcode": "M_LIMIT_EXCEEDED", "error": "slower", "retry_after_ms": 1500}
    line.server.answer = JSONResponse({"errcode": "M_FORBIDDEN", "error": "You aren't in that room"}, 403)
    with pytest.raises(SendNever, match="You aren't in that room"):
        await line.adapter.send(a_delivery(AT, "hello"))
    line.server.answer = JSONResponse({"errcode": "M_UNKNOWN_TOKEN", "error": "?"}, 401)
    with pytest.raises(SendLater, match="segue add matrix"):
        await line.adapter.send(a_delivery(AT, "hello"))
    line.server.answer = JSONResponse(limited, 429)
    with pytest.raises(SendLater) as told:
        await line.adapter.send(a_delivery(AT, "hello"))
    assert told.value.seconds == 1.5


@pytest.mark.parametrize(("answers", "pause"), [(3, 2.0), (12, 11.0)])
async def test_at_the_homeservers_own_limits_every_answer_is_seen_to_grow(
    line: Line, tmp_path: Path, answers: int, pause: float
) -> None:
    """Answers of four seconds: a few right after each other, and many as fast as a homeserver takes them for long."""
    clock = HandClock()
    server = Homeserver(line.adapter._server.url, BOT, Secret("t"))
    adapter = Matrix("main", server, Folder(tmp_path), lambda _: False, Bucket(10, 5.0), clock=clock)
    allowed, written, grew = Bucket(10, 5.0), list[float](), list[int]()

    async def writes(delivery: Delivery) -> str:
        message = await (adapter.edit(delivery) if delivery.message else adapter.send(delivery))
        assert allowed.wait(written, clock()) <= 0, "the homeserver would have refused it"
        allowed.add(written, clock())
        return message or delivery.message

    for n in range(answers):
        delivery, steps = msgspec.structs.replace(a_delivery(AT, f"answer {n}"), attempt=0), 0
        for second in range(4):
            with contextlib.suppress(SendLater):
                if not delivery.message:
                    delivery = delivery.with_message(await writes(delivery.placeholder))
                await writes(delivery.with_text(f"answer {n}, {second}"))
                steps += 1
            clock.passes(1.0)
        await writes(msgspec.structs.replace(delivery, attempt=1))
        clock.passes(pause)
        grew.append(steps)
    await adapter.close()
    assert min(grew) >= 1, grew
