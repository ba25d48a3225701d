"""What a signal-cli daemon may tell and answer, recorded from its source and manual: all that crabline doesn't know."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from segue.adapters.signal import Signal, SignalAccount
from segue.adapters.signal.daemon import Daemon
from segue.adapters.signal.incoming import Hears
from segue.adapters.signal.markup import LONGEST, fits, render, size
from segue.core.contracts.adapters import Accepted, Arrived
from segue.core.lanes import Address, Kind
from segue.core.messages import Citation, File, plain_text
from segue.errors import Disconnected, Invalid, SendError, SendLater, SendNever, SendUnsure
from segue.runtime.server.app import Mounted
from segue.runtime.server.listeners import Listener, serving
from segue.testing import HandClock, Shelf
from segue.testing.contracts.base import a_delivery
from segue.testing.harness import Given
from segue.testing.inbox import Inbox
from tests.servers.signal import NUMBER, OWN, PEOPLE, Someone

Json = dict[str, Any]
ANN, BEN = PEOPLE["Ann"], PEOPLE["Ben"]
CLUB = "Z3JvdXA/0001+w="
AT = Address("signal", "main", "", CLUB)
DM = Address("signal", "main", "", ANN.uuid)


class Recorded:
    """A daemon, which answers what a test says."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Json]] = []
        self.answers: dict[str, Any] = {"version": {"version": "0.14.6"}, "send": {"timestamp": 1700, "results": []}}
        self.stream: list[bytes] = []
        """The pieces in which the events come; then nothing more does."""
        self.listening = asyncio.Event()
        self.say: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        """Something that comes later."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        if request.url.path == "/api/v1/events":
            assert request.query_params["account"] == NUMBER
            await self._tell(receive, send)
            return
        asked = json.loads(await request.body())
        self.calls.append((asked["method"], asked["params"]))
        answer = self.answers.get(asked["method"], {})
        if not isinstance(answer, Response):
            failed = isinstance(answer, dict) and "code" in answer
            answer = JSONResponse({"jsonrpc": "2.0", "id": 1, ("error" if failed else "result"): answer})
        await answer(scope, receive, send)

    async def _tell(self, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b":\n", "more_body": True})
        for piece in self.stream:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        self.listening.set()
        await receive()
        gone = asyncio.create_task(receive())
        await asyncio.wait([gone, self.say], return_when=asyncio.FIRST_COMPLETED)
        if self.say.done():
            await send({"type": "http.response.body", "body": self.say.result(), "more_body": True})
        await gone

    def called(self, method: str) -> list[Json]:
        return [params for name, params in self.calls if name == method]


class World:
    """An adapter, the daemon that it calls, and what it takes in."""

    def __init__(self, recorded: Recorded, url: str, hears: Hears) -> None:
        self.recorded = recorded
        self.clock = HandClock(1000.0)
        self.inbox = Inbox()
        self.shelf = Shelf()
        self.signal = Signal("main", Daemon(url, NUMBER), NUMBER, self.shelf, hears, ticks=self.clock)

    async def hears(self, event: Any) -> None:
        await self.signal.take(event, self.inbox.accept)


@pytest.fixture
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    recorded, listener = Recorded(), Listener("127.0.0.1", 0)
    made = World(recorded, listener.url, getattr(request, "param", Hears.EVERYBODY))
    async with serving(Mounted(recorded), listener, 0.1):
        yield made
        await made.signal.close()


def event(envelope: Json, who: Someone = ANN) -> Json:
    """An event as signal-cli writes it, with what it doesn't know as null."""
    source = {"source": who.number or who.uuid, "sourceNumber": who.number or None, "sourceUuid": who.uuid or None}
    about = {
        "sourceName": {ANN.uuid[-3:]: "Ann", BEN.uuid[-3:]: "Ben"}.get((who.uuid or who.number)[-3:]),
        "sourceDevice": 1,
        "timestamp": 1500,
        "serverReceivedTimestamp": 1501,
    }
    return {"envelope": {**source, **about, **envelope}, "account": NUMBER}


def data(text: str | None, at: int = 1500, **more: Any) -> Json:
    return {"timestamp": at, "message": text, "expiresInSeconds": 0, "viewOnce": False, **more}


def said(text: str | None, at: int = 1500, who: Someone = ANN, **more: Any) -> Json:
    return event({"dataMessage": data(text, at, **more)}, who)


def in_club(text: str | None, at: int = 1500, who: Someone = ANN, **more: Any) -> Json:
    group = {"groupId": CLUB, "groupName": "The club", "revision": 3, "type": "DELIVER"}
    return said(text, at, who, **{"groupInfo": group, **more})


def mention(start: int, uuid: str = OWN, number: str | None = NUMBER) -> Json:
    return {"name": number or uuid, "number": number, "uuid": uuid, "start": start, "length": 1}


async def test_a_person_is_one_by_whichever_ids_are_shown(world: World) -> None:
    await world.hears(said("both", 1))
    await world.hears(said("uuid", 2, ANN._replace(number="")))
    await world.hears(said("number", 3, ANN._replace(uuid="")))
    both, uuid, number = world.inbox.arrivals
    assert (both.speaker.identity.user, both.speaker.aliases) == (ANN.uuid, (ANN.number,))
    assert (both.place.address.chat, both.chat_aliases, both.place.kind) == (ANN.uuid, (ANN.number,), Kind.DM)
    assert (uuid.place.address.chat, uuid.chat_aliases, uuid.speaker.aliases) == (ANN.uuid, (), ())
    assert (number.place.address.chat, number.speaker.identity.user) == (ANN.number, ANN.number)
    assert (both.message, both.speaker.name) == (f"1.{ANN.uuid}", "Ann")


async def test_two_people_may_write_at_the_same_moment_and_a_redelivery_may_hide_the_number(world: World) -> None:
    await world.hears(in_club("mine", 7, ANN))
    await world.hears(in_club("mine", 7, BEN))
    await world.hears(in_club("mine", 7, ANN._replace(number="")))
    await world.hears(in_club("mine", 7, ANN._replace(uuid="")))
    assert [arrival.speaker.identity.user for arrival in world.inbox.arrivals] == [ANN.uuid, BEN.uuid]
    assert len(world.inbox.duplicates) == 2


async def test_only_messages_of_others_are_heard(world: World) -> None:
    me = ANN._replace(uuid=OWN, number=NUMBER)
    for told in (
        said("me, by another device", who=me),
        event({"syncMessage": {"sentMessage": {"destinationNumber": ANN.number, **data("to Ann")}}}, me),
        event({"receiptMessage": {"when": 1, "isDelivery": True, "timestamps": [1]}}),
        event({"typingMessage": {"action": "STARTED", "timestamp": 1}}),
        said(None, reaction={"emoji": "👍", "targetAuthor": NUMBER, "targetSentTimestamp": 1, "isRemove": False}),
        in_club(None, groupInfo={"groupId": CLUB, "groupName": None, "revision": 4, "type": "UPDATE"}),
        said(None, isExpirationUpdate=True),
        {**event({}), "exception": {"message": "it can't be decrypted", "type": "ProtocolException"}},
    ):
        await world.hears(told)
    assert (world.inbox.arrivals, world.inbox.letters) == ([], [])


async def test_what_has_no_words_is_a_letter(world: World) -> None:
    await world.hears(said(None, sticker={"packId": "ab", "stickerId": 3}))
    await world.hears(said(None, pollCreate={"question": "Tea?", "allowMultiple": False, "options": []}))
    await world.hears({"envelope": {"dataMessage": {"timestamp": "soon"}}})
    await world.hears(in_club("nowhere", groupInfo={"groupId": ""}))
    assert [letter.why.partition(":")[0] for letter in world.inbox.letters] == [
        "sticker",
        "poll",
        "envelope",
        "groupId",
    ]
    assert world.inbox.arrivals == []


async def test_a_mention_is_a_name_and_the_agents_own_is_none(world: World) -> None:
    await world.hears(in_club("hello", 1))
    # A rocket is two units of UTF-16.
    await world.hears(in_club("\ufffc /new", 2, mentions=[mention(0)]))
    await world.hears(in_club("ask 🚀 \ufffc\ufffc", 3, BEN, mentions=[mention(7), mention(8, ANN.uuid, None)]))
    plain, command, asked = world.inbox.arrivals
    assert (plain.mentions_agent, plain.place.name, plain.place.kind) == (False, "The club", Kind.GROUP)
    assert (plain_text(command.parts), command.mentions_agent) == ("/new", True)
    assert (plain_text(asked.parts), asked.mentions_agent) == ("ask 🚀 @Ann", True)


async def test_a_reply_cites_what_others_said_and_names_what_the_agent_did(world: World) -> None:
    def quote(id: int, who: Someone, text: str) -> Json:
        return {"id": id, "author": who.number, "authorNumber": who.number, "authorUuid": who.uuid, "text": text}

    await world.hears(in_club("I like tea", 1, BEN))
    await world.hears(in_club("is that so?", 2, quote=quote(1, BEN, "I like tea")))
    await world.hears(in_club("go on", 3, quote=quote(1700, ANN._replace(uuid=OWN, number=NUMBER), "I think")))
    _, asked, replied = world.inbox.arrivals
    assert asked.cites == (Citation("I like tea", BEN.uuid, "Ben"),)
    assert (asked.quotes, asked.mentions_agent) == (f"1.{BEN.uuid}", False)
    assert (replied.quotes, replied.cites, replied.mentions_agent) == ("1700", (), True)


async def test_a_change_of_a_change_is_one_of_what_was_said_first(world: World) -> None:
    await world.hears(said("tea", 1))
    for target, at in ((1, 2), (2, 3), (1, 4)):
        edit = {"targetSentTimestamp": target, "dataMessage": data(f"tea {at}", at)}
        await world.hears(event({"editMessage": edit}))
    await world.hears(said(None, 5, remoteDelete={"timestamp": 3}))
    first, *changes, gone = world.inbox.arrivals
    assert [(change.edits, change.message) for change in changes] == [
        (first.message, f"{at}.{ANN.uuid}") for at in (2, 3, 4)
    ]
    assert (gone.deletes, gone.parts, gone.message) == (first.message, (), f"5.{ANN.uuid}")


@pytest.mark.parametrize("world", [Hears.NOTES], indirect=True)
async def test_of_ones_own_number_only_notes_to_self_are_for_the_agent(world: World) -> None:
    me = ANN._replace(uuid=OWN, number=NUMBER)

    def sent(to: Someone, text: str | None, at: int, **more: Any) -> Json:
        about = {"destination": to.number, "destinationNumber": to.number, "destinationUuid": to.uuid}
        return event({"syncMessage": {"sentMessage": {**about, **data(text, at), **more}}}, me)

    await world.hears(said("a friend writes", 1))
    await world.hears(in_club("a club, too", 2))
    await world.hears(sent(ANN, "to a friend", 3))
    await world.hears(sent(me, "in the club", 4, groupInfo={"groupId": CLUB}))
    await world.hears(event({"syncMessage": {"readMessages": [{"timestamp": 1}]}}, me))
    await world.hears(sent(me, "a note", 5))
    answered = {"id": 1700, "authorNumber": NUMBER, "authorUuid": OWN, "text": "I think", "attachments": []}
    await world.hears(sent(me, "go on", 6, quote=answered))
    edit = {"targetSentTimestamp": 5, "dataMessage": data("a better note", 7)}
    edited = {"destinationNumber": NUMBER, "destinationUuid": OWN, "editMessage": edit}
    await world.hears(event({"syncMessage": {"sentMessage": edited}}, me))
    note, reply, change = world.inbox.arrivals
    assert (note.place.address.chat, note.chat_aliases, note.place.kind) == (OWN, (NUMBER,), Kind.DM)
    assert (note.message, reply.quotes, change.edits) == ("5", "1700", "5")
    assert [plain_text(one.parts) for one in (note, reply, change)] == ["a note", "go on", "a better note"]
    assert not world.inbox.letters


async def test_markdown_is_words_and_styles() -> None:
    assert render("# Hi\n\n**bold *both*** ~~no~~ `x`") == (
        "Hi\n\nbold both no x",
        ["0:2:BOLD", "9:4:ITALIC", "4:9:BOLD", "14:2:STRIKETHROUGH", "17:1:MONOSPACE"],
    )
    assert render("🚀 **b**") == ("🚀 b", ["3:1:BOLD"])
    assert render("- [tea](https://tea.example)\n- https://a.example") == (
        "• tea (https://tea.example)\n• https://a.example",
        [],
    )
    table = "| a | b |\n|---|---|\n| 10 | 2 |"
    assert render(table) == ("a  | b\n10 | 2", ["0:13:MONOSPACE"])
    assert render("> said\n> so")[0] == "> said\n> so"
    assert render("```py\nx = '*'\n```") == ("x = '*'", ["0:7:MONOSPACE"])
    # Nobody can begin a style by typing the character that stands for one.
    assert render("\U000f0000a\U000f0100") == ("a", [])
    assert render("[](https://a.example)") == ("https://a.example", [])
    assert render("***") == ("———", [])


async def test_what_fits_is_counted_in_bytes_after_it_is_rendered() -> None:
    assert fits("ü" * (LONGEST // 2))
    assert not fits("ü" * (LONGEST // 2 + 1))
    wide = "| a | b |\n|---|---|\n" + f"| {'x' * 60} | y |\n"
    small, large = (wide + "| z | z |\n" * rows for rows in (60, 130))
    assert size(large) < LONGEST
    assert not fits(large), "its columns are wider than its words"
    # What is sure to fit without its columns goes out like that.
    assert fits(small)
    assert render(small) == (small, [])


@pytest.mark.parametrize(
    ("error", "outcome", "words"),
    [
        ({"code": -1, "message": "Not a member of the group"}, SendNever, "Not a member"),
        (
            {
                "code": -1,
                "message": "Failed to send message",
                "data": {"response": {"results": [{"type": "UNREGISTERED_FAILURE"}]}},
            },
            SendNever,
            "aren't on Signal",
        ),
        (
            {
                "code": -1,
                "message": "Failed to send message",
                "data": {"response": {"results": [{"type": "NETWORK_FAILURE"}]}},
            },
            SendUnsure,
            "couldn't reach Signal",
        ),
        ({"code": -3, "message": "Connection closed!", "data": None}, SendUnsure, "Connection closed"),
        ({"code": -4, "message": "Failed", "data": 7}, SendNever, "safety number"),
        ({"code": -32603, "message": "No prekeys available"}, SendUnsure, "prekeys"),
        ({"code": -32602, "message": "Specified account does not exist"}, SendLater, f"no account \\{NUMBER}"),
        ({"code": -32601, "message": "Method not implemented"}, SendNever, "Method not implemented"),
        (Response("gone", 502), SendUnsure, "502"),
        (Response("busy", 503, {"Retry-After": "7"}), SendLater, "503"),
        (Response("{}"), SendUnsure, "didn't answer"),
        (Response("what?"), SendUnsure, "JSON"),
    ],
)
async def test_an_error_says_what_became_of_a_message(
    world: World, error: Any, outcome: type[SendError], words: str
) -> None:
    world.recorded.answers["send"] = error
    with pytest.raises(outcome, match=words):
        await world.signal.send(a_delivery(DM, "hello"))


async def test_signal_is_given_the_time_that_it_asks_for(world: World) -> None:
    slow = [{"type": "RATE_LIMIT_FAILURE", "retryAfterSeconds": wait, "token": "t"} for wait in (30, 90)]
    refused = {"code": -5, "message": "Failed", "data": {"response": {"results": [*slow, 7]}}}
    world.recorded.answers["send"] = refused
    with pytest.raises(SendLater, match="captcha") as caught:
        await world.signal.send(a_delivery(DM, "hello"))
    assert caught.value.seconds == 90.0


async def test_an_answer_in_a_group_quotes_what_it_answers(world: World) -> None:
    await world.hears(in_club("why is the sky blue?", 5))
    delivery = a_delivery(AT, "**Light** scatters.")
    asked = f"5.{ANN.uuid}"
    assert await world.signal.send(replace(delivery, answers=(asked,))) == "1700"
    await world.signal.send(replace(delivery, answers=(asked,), address=DM))
    club, private = world.recorded.called("send")
    assert club == {
        "account": NUMBER,
        "groupId": CLUB,
        "message": "Light scatters.",
        "textStyle": ["0:5:BOLD"],
        "quoteTimestamp": 5,
        "quoteAuthor": ANN.uuid,
        "quoteMessage": "why is the sky blue?",
    }
    assert (private["recipient"], "quoteTimestamp" in private) == ([ANN.uuid], False)


async def test_a_file_goes_in_the_call_and_a_message_is_taken_back(world: World) -> None:
    async def content() -> AsyncIterator[bytes]:
        yield b"# Plans"

    file = await world.shelf.keep("my plans; ü.md", "text/markdown", content())
    await world.signal.send(replace(a_delivery(DM, ""), file=file))
    [call] = world.recorded.called("send")
    assert call["attachments"] == ["data:text/markdown;filename=my%20plans%3B%20%C3%BC.md;base64,IyBQbGFucw=="]
    await world.signal.delete(AT, "1700")
    assert world.recorded.called("remoteDelete") == [{"account": NUMBER, "groupId": CLUB, "targetTimestamp": 1700}]
    with pytest.raises(SendNever, match="no message of this account"):
        await world.signal.delete(AT, f"5.{ANN.uuid}")


async def test_the_sign_that_somebody_writes_is_renewed_before_it_ends(world: World) -> None:
    for _ in range(6):
        await world.signal.typing(DM)
        world.clock.passes(4.0)
    assert world.recorded.called("sendTyping") == [{"account": NUMBER, "recipient": [ANN.uuid]}] * 2


async def test_a_file_that_cant_be_had_leaves_a_remark(world: World) -> None:
    files = [
        {"id": "a.png", "contentType": "image/png", "filename": None, "size": 3},
        {"id": "b.bin", "contentType": None, "filename": "huge.bin", "size": 10**9},
    ]
    world.recorded.answers["getAttachment"] = {"code": -1, "message": "Could not find attachment"}
    await world.hears(said(None, attachments=files))
    world.recorded.answers["getAttachment"] = {"data": "not base64!"}
    await world.hears(said("look", 2, attachments=files[:1]))
    world.recorded.answers["getAttachment"] = {"data": "YWJj"}
    await world.hears(in_club("look", 3, attachments=files[:1]))
    none, garbled, whole = world.inbox.arrivals
    assert none.remarks == (
        "a.png wasn't taken in. The signal-cli daemon hasn't got it.",
        "huge.bin wasn't taken in. It is larger than 20 MB.",
    )
    assert garbled.remarks == ("a.png wasn't taken in. The signal-cli daemon gives something else.",)
    [file] = [part for part in whole.parts if isinstance(part, File)]
    assert (file.name, await world.shelf.read(file)) == ("a.png", b"abc")
    assert world.recorded.called("getAttachment")[-1] == {"account": NUMBER, "id": "a.png", "groupId": CLUB}


async def test_a_stream_is_read_however_it_is_cut(world: World) -> None:
    texts = ["one", "two\u2028lines\x85here\r\x0b", "three 🚀"]
    events = [json.dumps(said(text, n), ensure_ascii=False) for n, text in enumerate(texts, 1)]
    body = "".join(f"event:receive\ndata:{told}\n\n:\n" for told in events).encode()
    cut = body.index("🚀".encode()) + 2
    world.recorded.stream = [body[:7], body[7:cut], body[cut:]]
    given = Given(world.inbox.accept)
    running = asyncio.create_task(world.signal.run(given))
    await world.inbox.gets(texts[-1])
    running.cancel()
    await asyncio.wait([running])
    assert world.inbox.texts == texts


async def test_what_was_told_is_kept_though_the_disk_is_full_or_the_end_comes(world: World) -> None:
    events = [said(str(n), n) for n in range(1, 31)]
    world.recorded.stream = [f"data:{json.dumps(told)}\n\n".encode() for told in events]
    world.inbox.refusals = 2
    begun, more = asyncio.Event(), asyncio.Event()

    async def accept(arrived: Arrived) -> Accepted:
        begun.set()
        await more.wait()
        return await world.inbox.accept(arrived)

    running = asyncio.create_task(world.signal.run(Given(accept)))
    await begun.wait()
    await world.recorded.listening.wait()
    running.cancel()
    more.set()
    await asyncio.wait([running])
    assert running.cancelled()
    assert world.inbox.texts == [str(n) for n in range(1, 31)]


async def test_what_came_while_the_machine_slept_is_kept_though_somebody_else_is_to_listen(world: World) -> None:
    given = Given(world.inbox.accept)
    running = asyncio.create_task(world.signal.run(given))
    await given.is_well()
    # The word to end comes in the moment of waking, before the socket is looked at.
    world.recorded.say.set_result(f"data:{json.dumps(said('four', 4))}\n\n".encode())
    running.cancel()
    await asyncio.wait([running])
    assert world.inbox.texts == ["four"]


async def test_a_stream_that_is_silent_for_long_is_dead(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.adapters.signal.daemon._SILENT", 0.3)
    with pytest.raises(Disconnected, match="broke"):
        await world.signal.run(Given(world.inbox.accept))


async def test_a_daemon_that_isnt_there_is_named_with_how_to_start_it() -> None:
    signal = Signal("main", Daemon("http://127.0.0.1:9", NUMBER), NUMBER, Shelf())
    with pytest.raises(Disconnected, match=r"at http://127\.0\.0\.1:9\. Start one: signal-cli daemon --http"):
        await signal.run(Given(Inbox().accept))
    await signal.close()


@pytest.mark.parametrize(
    ("keys", "field"), [({"number": "0151"}, "number"), ({"number": NUMBER, "daemon": "x"}, "daemon")]
)
def test_wrong_keys_are_named(keys: Json, field: str) -> None:
    with pytest.raises(Invalid) as caught:
        SignalAccount(**keys)
    assert caught.value.field == field
