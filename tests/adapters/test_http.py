import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from segue.adapters.http import Http, HttpAccount
from segue.adapters.http.callback import LARGEST as LARGEST_ANSWER
from segue.adapters.http.callback import Call, Callback
from segue.adapters.http.signature import Signing, Version
from segue.adapters.http.webhook import Webhook
from segue.adapters.shared.webhooks import LARGEST
from segue.core.contracts.adapters import (
    Accepted,
    Adapter,
    Arrived,
    Closes,
    EditsMessages,
    OpensThreads,
    ShowsTyping,
    TakesWebhooks,
    Unfetched,
)
from segue.core.lanes import Address, Identity, Kind
from segue.core.messages import Arrival, Citation, Citing, Delivery, File, Pressed, Text
from segue.core.values import Secret
from segue.errors import Invalid, SendLater, SendNever, SendUnsure, StoreFull
from segue.runtime.server.app import Mounted
from segue.runtime.server.listeners import Listener, serving
from segue.testing import Shelf
from tests.adapters.platform import Platform, platform, signed
from tests.clients import http_client

NOW = 1_800_000_000.0
KEY = "s3cret-of-alpha"
SECRET = Secret(KEY)
WHOLE: dict[str, Any] = {
    "id": "m-1",
    "space": "guild",
    "chat": "lobby",
    "chat_kind": "group",
    "chat_name": "The lobby",
    "chat_aliases": ["lobby-old"],
    "topic": "Tea",
    "thread": "t-9",
    "person": {"id": "u1", "name": "Ada", "aliases": ["+351"]},
    "text": "Hello 😀",
    "quotes": "m-0",
    "edits": "m-00",
    "mentions_agent": True,
}
LEAST: dict[str, Any] = {"id": "m-1", "chat_kind": "dm", "person": {"id": "u1"}, "text": "Hello"}


class Inbox:
    """Takes arrivals in memory, each id once."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self.full = False

    async def accept(self, arrived: Arrived) -> Accepted:
        arrival = arrived.arrival if isinstance(arrived, Unfetched) else arrived
        assert isinstance(arrival, Arrival)
        if self.full:
            raise StoreFull("The disk is full.")
        if any(arrival.message == other.message for other in self.arrivals):
            return Accepted.DUPLICATE
        whole = await arrived.fetch() if isinstance(arrived, Unfetched) else arrival
        assert isinstance(whole, Arrival)
        self.arrivals.append(whole)
        return Accepted.NEW


def door(inbox: Inbox) -> Webhook:
    return Webhook("alpha", SECRET, inbox.accept, Shelf(), lambda: NOW)


async def knock(
    app: Webhook, body: bytes, headers: dict[str, str] | list[tuple[str, str]] | None = None, method: str = "POST"
) -> httpx2.Response:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1") as client:
        if headers is None:
            headers = signed(KEY, body, NOW)
        return await client.request(method, "/in/http/alpha", content=body, headers=headers)


def encoded(message: object) -> bytes:
    return json.dumps(message).encode()


async def test_a_whole_message_comes_in_as_it_was_sent() -> None:
    inbox = Inbox()
    response = await knock(door(inbox), encoded(WHOLE))
    assert (response.status_code, response.json()) == (202, {"accepted": True})
    [arrival] = inbox.arrivals
    assert arrival.place.address == Address("http", "alpha", "guild", "lobby", "t-9")
    assert (arrival.place.kind, arrival.place.name, arrival.place.topic) == (Kind.GROUP, "The lobby", "Tea")
    assert arrival.speaker.identity == Identity("http", "alpha", "u1")
    assert (arrival.speaker.name, arrival.speaker.aliases) == ("Ada", ("+351",))
    assert (arrival.message, arrival.quotes, arrival.edits) == ("m-1", "m-0", "m-00")
    assert arrival.parts == (Text("Hello 😀"),)
    assert (arrival.mentions_agent, arrival.chat_aliases, arrival.at) == (True, ("lobby-old",), NOW)


async def test_what_comes_beside_the_words_comes_in_as_data() -> None:
    inbox = Inbox()
    cites = [{"author": {"id": "u2", "name": "Ben"}, "text": "at six", "kind": "forward"}, {"text": "when?"}]
    files = [{"name": "a.txt", "media": "text/plain", "data": "aGVsbG8="}]
    more = LEAST | {"text": "", "cites": cites, "files": files}
    assert (await knock(door(inbox), encoded(more))).status_code == 202
    assert (await knock(door(inbox), encoded(LEAST | {"id": "m-2", "text": "", "deletes": "m-1"}))).status_code == 202
    pressed = {"message": "m-9", "choice": "/yes"}
    assert (await knock(door(inbox), encoded(LEAST | {"id": "m-3", "text": "", "pressed": pressed}))).status_code == 202
    first, second, third = inbox.arrivals
    assert first.cites == (Citation("at six", "u2", "Ben", Citing.FORWARD), Citation("when?"))
    [file] = first.parts
    assert isinstance(file, File)
    assert (file.name, file.media, file.size) == ("a.txt", "text/plain", 5)
    assert (second.deletes, second.parts) == ("m-1", ())
    assert (third.pressed, third.parts, third.heard.parts) == (Pressed("m-9", "/yes"), (), (Text("/yes"),))


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"files": [{"name": "a"}]}, "files[0]"),
        ({"files": [{"data": "%%%"}]}, "files[0].data"),
        ({"files": [{"url": "http://127.0.0.1:1/x"}]}, "files[0].url"),
        ({"cites": [{"author": {"id": "u2"}}]}, "cites[0].text"),
        ({"cites": [{"text": "a\u0000"}]}, "cites.text"),
        ({"pressed": {"message": "m"}}, "pressed.choice"),
    ],
)
async def test_what_comes_beside_the_words_is_refused_by_its_name(wrong: dict[str, Any], field: str) -> None:
    response = await knock(door(Inbox()), encoded(LEAST | wrong))
    assert (response.status_code, response.json()["field"]) == (422, field)


async def test_the_least_message_comes_in_and_null_is_nothing() -> None:
    inbox = Inbox()
    least = LEAST | {"thread": None, "quotes": None, "chat_name": None}
    assert (await knock(door(inbox), encoded(least))).status_code == 202
    assert inbox.arrivals[0].place.address == Address("http", "alpha")
    assert not inbox.arrivals[0].mentions_agent


async def test_a_replay_is_acknowledged_as_a_duplicate() -> None:
    inbox = Inbox()
    app = door(inbox)
    await knock(app, encoded(WHOLE))
    response = await knock(app, encoded(WHOLE))
    assert (response.status_code, response.json()) == (200, {"accepted": False, "duplicate": True})
    assert len(inbox.arrivals) == 1


async def test_what_cannot_be_made_durable_is_to_be_sent_again() -> None:
    inbox = Inbox()
    inbox.full = True
    response = await knock(door(inbox), encoded(WHOLE))
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) >= 1
    assert response.json()["accepted"] is False
    assert "disk" not in response.text


BODY = encoded(LEAST)
RIGHT = signed(KEY, BODY, NOW)
STAMP, SIGNATURE = RIGHT["X-Segue-Timestamp"], RIGHT["X-Segue-Signature"]


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="none"),
        pytest.param({"X-Segue-Signature": SIGNATURE}, id="no timestamp"),
        pytest.param({"X-Segue-Timestamp": STAMP}, id="no signature"),
        pytest.param(signed("another secret", BODY, NOW), id="another secret"),
        pytest.param(signed(KEY, BODY + b" ", NOW), id="another body"),
        pytest.param(RIGHT | {"X-Segue-Timestamp": str(int(NOW) + 1)}, id="another time"),
        pytest.param(signed(KEY, BODY, NOW - 301), id="old"),
        pytest.param(signed(KEY, BODY, NOW + 301), id="from the future"),
        pytest.param(RIGHT | {"X-Segue-Timestamp": f"{STAMP}.0"}, id="not whole seconds"),
        pytest.param(RIGHT | {"X-Segue-Timestamp": f"+{STAMP}"}, id="a sign"),
        pytest.param(RIGHT | {"X-Segue-Timestamp": "9" * 400}, id="a huge number"),
        pytest.param(RIGHT | {"X-Segue-Signature": SIGNATURE.removeprefix("v1=")}, id="no version"),
        pytest.param(RIGHT | {"X-Segue-Signature": SIGNATURE.replace("v1", "v2")}, id="another version"),
        pytest.param(RIGHT | {"X-Segue-Signature": SIGNATURE[:-2]}, id="cut"),
        pytest.param(RIGHT | {"X-Segue-Signature": SIGNATURE + "00"}, id="longer"),
        pytest.param(RIGHT | {"X-Segue-Signature": "v1=" + "zz" * 32}, id="not hex"),
        pytest.param([*RIGHT.items(), ("X-Segue-Timestamp", STAMP)], id="two timestamps"),
        pytest.param([("X-Segue-Signature", "v1=" + "0" * 64), *RIGHT.items()], id="two signatures, first wrong"),
        pytest.param([*RIGHT.items(), ("X-Segue-Signature", "v1=" + "0" * 64)], id="two signatures, first right"),
    ],
)
async def test_what_nobody_signed_now_is_refused(headers: dict[str, str] | list[tuple[str, str]]) -> None:
    inbox = Inbox()
    response = await knock(door(inbox), BODY, headers)
    assert response.status_code == 401
    assert response.json()["accepted"] is False
    assert KEY not in response.text
    assert not inbox.arrivals


@pytest.mark.parametrize("away", [-300, 0, 300])
async def test_a_clock_may_be_five_minutes_off_either_way(away: int) -> None:
    assert (await knock(door(Inbox()), BODY, signed(KEY, BODY, NOW + away))).status_code == 202


async def test_a_signature_may_be_written_in_capitals() -> None:
    digest = SIGNATURE.removeprefix("v1=").upper()
    assert (await knock(door(Inbox()), BODY, RIGHT | {"X-Segue-Signature": f"v1={digest}"})).status_code == 202


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param(b"", "body", id="nothing"),
        pytest.param(b"[]", "body", id="a list"),
        pytest.param(b"{", "body", id="cut"),
        pytest.param(b'{"id": "\xff"}', "body", id="not UTF-8"),
        pytest.param(encoded(LEAST).replace(b"Hello", b"\\ud800 x"), "body", id="half a character"),
        pytest.param(b"[" * 200_000, "body", id="deep"),
        pytest.param(encoded({k: v for k, v in LEAST.items() if k != "id"}), "id", id="no id"),
        pytest.param(encoded({k: v for k, v in LEAST.items() if k != "chat_kind"}), "chat_kind", id="no kind"),
        pytest.param(encoded({k: v for k, v in LEAST.items() if k != "person"}), "person", id="no person"),
        pytest.param(encoded({k: v for k, v in LEAST.items() if k != "text"}), "text", id="no text"),
        pytest.param(encoded(LEAST | {"id": ""}), "id", id="empty id"),
        pytest.param(encoded(LEAST | {"id": 7}), "id", id="a number as id"),
        pytest.param(encoded(LEAST | {"text": " \n"}), "text", id="blank text"),
        pytest.param(encoded(LEAST | {"text": "a\0b"}), "text", id="NUL in text"),
        pytest.param(encoded(LEAST | {"chat": "a\0b"}), "chat", id="NUL in an id"),
        pytest.param(encoded(LEAST | {"chat_kind": "forum"}), "chat_kind", id="unknown kind"),
        pytest.param(encoded(LEAST | {"person": {}}), "person.id", id="person without id"),
        pytest.param(encoded(LEAST | {"person": {"id": ""}}), "person.id", id="person with empty id"),
        pytest.param(encoded(LEAST | {"person": {"id": "u", "nmae": "x"}}), "person.nmae", id="typo in person"),
        pytest.param(encoded(LEAST | {"person": {"id": "u", "aliases": ["a", 2]}}), "person.aliases[1]", id="alias"),
        pytest.param(encoded(LEAST | {"person": {"id": "u", "aliases": [""]}}), "person.aliases", id="blank alias"),
        pytest.param(encoded(LEAST | {"chat_aliases": [f"c{n}" for n in range(9)]}), "chat_aliases", id="many aliases"),
        pytest.param(
            encoded(LEAST | {"person": {"id": "u", "aliases": [f"u{n}" for n in range(9)]}}),
            "person.aliases",
            id="many ids of a person",
        ),
        pytest.param(encoded(LEAST | {"chat_aliases": ["lobby", " "]}), "chat_aliases", id="blank chat alias"),
        pytest.param(encoded(LEAST | {"chat_kid": "dm"}), "chat_kid", id="typo"),
        pytest.param(encoded(LEAST | {"mentions_agent": "yes"}), "mentions_agent", id="text for a truth"),
        pytest.param(encoded(LEAST | {"thread": "é" * 128}), "thread", id="long id"),
        pytest.param(encoded(LEAST | dict.fromkeys(("space", "chat", "thread"), "/" * 255)), "chat", id="long place"),
    ],
)
async def test_what_cannot_be_understood_is_refused_with_the_name_of_the_field(body: bytes, field: str) -> None:
    inbox = Inbox()
    response = await knock(door(inbox), body)
    assert response.status_code == 422
    assert response.json()["field"] == field
    assert response.json()["problem"]
    assert response.json()["fix"]
    assert not inbox.arrivals


async def test_a_call_out_that_is_sent_back_in_is_not_a_message() -> None:
    inbox = Inbox()
    async with platform() as there:
        await send(there)
    [body] = there.bodies
    assert (await knock(door(inbox), body)).status_code == 422
    assert not inbox.arrivals


async def test_a_body_may_be_large_but_not_larger() -> None:
    inbox = Inbox()
    fits = encoded(LEAST | {"text": "x" * (LARGEST - len(encoded(LEAST | {"text": ""})))})
    assert len(fits) == LARGEST
    assert (await knock(door(inbox), fits)).status_code == 202
    assert (await knock(door(inbox), fits + b" ")).status_code == 413
    assert len(inbox.arrivals) == 1


async def test_only_a_post_brings_a_message() -> None:
    response = await knock(door(Inbox()), b"", method="PUT")
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")


async def test_a_body_that_does_not_come_is_not_waited_for_and_a_caller_who_leaves_is_let_go() -> None:
    inbox, sent = Inbox(), list[dict[str, Any]]()
    app = Webhook("alpha", SECRET, inbox.accept, Shelf(), lambda: NOW, slowest=0.01)
    scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "query_string": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    async def never() -> Any:
        await asyncio.Event().wait()

    async def left() -> Any:
        return {"type": "http.disconnect"}

    await app(scope, never, send)
    assert sent[0]["status"] == 408
    sent.clear()
    await app(scope, left, send)
    assert not sent
    assert not inbox.arrivals


async def test_a_message_comes_in_over_a_real_connection() -> None:
    inbox, listener = Inbox(), Listener("127.0.0.1", 0)
    async with serving(Mounted(door(inbox)), listener), http_client() as client:
        body = encoded(WHOLE)
        response = await client.post(listener.url, content=body, headers=signed(KEY, body, NOW))
    assert response.status_code == 202
    assert len(inbox.arrivals) == 1


HERE = Address("http", "alpha", "guild", "lobby", "t-9")
ONE = Delivery("d1", HERE, "s1", 4, "An answer", "key-1", answers=("m-1", "m-2"))


@asynccontextmanager
async def adapter(url: str, *, opens_threads: bool = False, edits: bool = False) -> AsyncIterator[Http]:
    made = HttpAccount(SECRET, url, opens_threads, edits).adapter("alpha", Shelf())
    try:
        yield made
    finally:
        await made.close()


@pytest.mark.parametrize(("account", "status"), [("alpha", 200), ("beta", 404)])
async def test_a_file_is_given_to_the_account_that_it_was_offered_to(account: str, status: int) -> None:
    shelf, inbox = Shelf(), Inbox()

    async def content() -> AsyncIterator[bytes]:
        yield b"# Plans"

    file = await shelf.keep("plans.md", "text/markdown", content())
    query = urlencode({"file": file.where, "proof": Signing.of(SECRET, "alpha").prove_file(file.where)})
    path = f"/in/http/{account}?{query}"
    app = Webhook(account, SECRET, inbox.accept, shelf, lambda: NOW)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1") as client:
        assert (await client.get(path, headers=signed(KEY, path.encode(), NOW))).status_code == status


async def send(there: Platform, delivery: Delivery = ONE) -> str:
    async with adapter(there.url) as http:
        return await http.send(delivery)


async def test_a_message_goes_out_signed_with_every_field() -> None:
    async with platform() as there:
        assert await send(there) == "m1"
    assert there.calls == [
        {
            "key": "key-1",
            "kind": "message",
            "address": {"platform": "http", "account": "alpha", "space": "guild", "chat": "lobby", "thread": "t-9"},
            "text": "An answer",
            "message": "",
            "in_reply_to": "m-2",
            "answers": ["m-1", "m-2"],
            "session": "s1",
            "title": "",
            "choices": [],
            "question": "",
            "only": "",
            "file": None,
        }
    ]
    [headers] = there.headers
    proof = signed(KEY, there.bodies[0], float(headers["x-segue-timestamp"]))
    assert headers["x-segue-signature"] == proof["X-Segue-Signature"]
    assert headers["content-type"] == "application/json"


async def test_a_message_keeps_its_key_and_every_other_call_has_its_own() -> None:
    shown = Delivery("d1", HERE, "s1", 4, "So far", "key-1", message="m1")
    async with platform() as there, adapter(there.url, opens_threads=True, edits=True) as http:
        assert isinstance(http, EditsMessages)
        assert isinstance(http, ShowsTyping)
        await http.send(ONE)
        await http.send(ONE)
        for _ in range(2):
            await http.edit(shown)
            await http.typing(HERE)
    keys = [(call["kind"], call["key"]) for call in there.calls]
    assert keys[:2] == [("message", "key-1")] * 2
    assert len({key for _, key in keys}) == 5
    edit = there.calls[2]
    assert (edit["kind"], edit["message"], edit["text"]) == ("edit", "m1", "So far")


async def test_a_thread_is_opened_in_the_chat() -> None:
    async with platform() as there, adapter(there.url, opens_threads=True) as http:
        assert isinstance(http, OpensThreads)
        opened = await http.open_thread(Address("http", "alpha", "guild", "lobby"), "Tea & cake", "key-7")
    assert opened == Address("http", "alpha", "guild", "lobby", "t1")
    [call] = there.calls
    assert (call["kind"], call["key"], call["title"], call["text"]) == ("open_thread", "key-7", "Tea & cake", "")


@pytest.mark.parametrize("opens_threads", [False, True])
@pytest.mark.parametrize("edits", [False, True])
async def test_an_adapter_can_do_what_its_platform_can(opens_threads: bool, edits: bool) -> None:  # noqa: FBT001
    async with adapter("http://127.0.0.1:1", opens_threads=opens_threads, edits=edits) as http:
        always: Adapter = http
        assert (always.platform, always.account) == ("http", "alpha")
        assert isinstance(http, TakesWebhooks)
        assert isinstance(http, Closes)
        assert isinstance(http, OpensThreads) is opens_threads
        assert isinstance(http, EditsMessages) is edits
        assert isinstance(http, ShowsTyping) is edits


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        pytest.param(Response(status_code=429, headers={"Retry-After": "7"}), 7, id="429, seconds"),
        pytest.param(
            Response(status_code=429, headers={"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}), 0, id="429, a date"
        ),
        pytest.param(Response(status_code=429, headers={"Retry-After": "soon"}), None, id="429, nonsense"),
        pytest.param(Response(status_code=500), None, id="500"),
        pytest.param(Response(status_code=503, headers={"Retry-After": "2"}), 2, id="503"),
    ],
)
async def test_a_busy_platform_is_asked_again_later(answer: Response, seconds: float | None) -> None:
    async with platform() as there:
        there.answer = answer
        with pytest.raises(SendLater) as caught:
            await send(there)
    assert caught.value.seconds == seconds


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(JSONResponse({"id": "m1"}, 400), id="400"),
        pytest.param(JSONResponse({"id": "m1"}, 404), id="404"),
        pytest.param(JSONResponse({"id": "m1"}, 410), id="410"),
        pytest.param(RedirectResponse("/elsewhere"), id="a redirect"),
        pytest.param(Response(status_code=204), id="nothing"),
        pytest.param(PlainTextResponse("ok"), id="no JSON"),
        pytest.param(Response(b'{"id": "\xff"}'), id="not UTF-8"),
        pytest.param(JSONResponse([]), id="a list"),
        pytest.param(JSONResponse({}), id="no id"),
        pytest.param(JSONResponse({"id": ""}), id="empty id"),
        pytest.param(JSONResponse({"id": None}), id="null id"),
        pytest.param(JSONResponse({"id": True}), id="a truth as id"),
        pytest.param(JSONResponse({"id": "a\0"}), id="NUL in id"),
        pytest.param(JSONResponse({"id": "m1", "more": "x" * LARGEST_ANSWER}), id="too long"),
    ],
)
async def test_what_a_platform_will_never_take_is_given_up(answer: Response) -> None:
    async with platform() as there:
        there.answer = answer
        with pytest.raises(SendNever):
            await send(there)
    assert len(there.calls) == 1


async def test_a_number_is_an_id_too() -> None:
    async with platform() as there:
        there.answer = JSONResponse({"id": 42, "anything": "else"})
        assert await send(there) == "42"


async def test_an_edit_needs_no_id_in_its_answer() -> None:
    async with platform() as there, adapter(there.url, edits=True) as http:
        there.answer = Response(status_code=204)
        assert isinstance(http, EditsMessages)
        await http.edit(ONE)


async def test_an_opened_thread_needs_its_id() -> None:
    async with platform() as there, adapter(there.url, opens_threads=True) as http:
        there.answer = JSONResponse({"id": "m1"})
        assert isinstance(http, OpensThreads)
        with pytest.raises(SendNever, match="thread"):
            await http.open_thread(HERE.outside, "Tea", "key-7")


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def drop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read the call, answer nothing."""
    await reader.readuntil(b"\r\n\r\n")


async def drop_midway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Break off in the middle of an answer."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"id":')
    await writer.drain()


async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer with something that isn't HTTP."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"\x00\x01\x02 hello\r\n\r\n")
    await writer.drain()


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Never answer."""
    await reader.read(-1)


async def dribble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer for ever, byte by byte, so that no single read is slow."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not reader.at_eof():
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("serve", [drop, drop_midway, garbage, hang, dribble])
async def test_a_call_that_breaks_off_leaves_it_unknown_whether_it_was_heard(serve: Serve) -> None:
    async def serve_and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except ConnectionError:
            """The caller lost patience first."""
        finally:
            writer.close()

    server = await asyncio.start_server(serve_and_close, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        callback = Callback(f"http://127.0.0.1:{port}/out", SECRET, lambda: NOW, slowest=0.3)
        try:
            async with asyncio.timeout(90):
                with pytest.raises(SendUnsure):
                    await callback.call(Call("key-1", "message", HERE))
        finally:
            await callback.close()


async def test_a_platform_that_is_down_is_tried_again_later() -> None:
    listener = Listener("127.0.0.1", 0)
    listener.close()
    async with adapter(f"{listener.url}/out") as http:
        with pytest.raises(SendLater):
            await http.send(ONE)


async def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with platform() as there:
        assert await send(there) == "m1"


@pytest.mark.parametrize(
    "url", ["", "lobby", "ftp://127.0.0.1/x", "http://", "http://127.0.0.1:99999/", "http://u:p@h/"]
)
def test_a_callback_is_a_whole_http_address(url: str) -> None:
    with pytest.raises(Invalid, match="callback"):
        HttpAccount(SECRET, url)


def test_a_secret_does_not_show_itself() -> None:
    account = HttpAccount(SECRET, "http://127.0.0.1/out")
    assert KEY not in f"{account!r} {account} {SECRET}"


def proved(version: str, body: bytes, key: str = KEY, way: str = "in", account: str = "alpha") -> str:
    """A signature, made from the documentation alone."""
    named = f"v2.{way}.{account}." if version == "v2" else ""
    digest = hmac.new(key.encode(), f"{named}{int(NOW)}.".encode() + body, hashlib.sha256).hexdigest()
    return f"{version}={digest}"


V1, V2 = proved("v1", BODY), proved("v2", BODY)


@pytest.mark.parametrize(
    ("versions", "shown", "status"),
    [
        (("v1",), V1, 202),
        (("v1",), V2, 202),
        (("v1",), f"{V1},{V2}", 202),
        (("v1",), f"{V2}, {V1}", 202),
        (("v1",), f"{V1},{proved('v2', BODY, way='out')}", 401),
        (("v1",), f"{V1},{V1}", 401),
        (("v2",), V2, 202),
        (("v2",), V1, 401),
        (("v2",), proved("v2", BODY, way="out"), 401),
        (("v2",), proved("v2", BODY, account="beta"), 401),
        (("v2",), proved("v2", BODY, key="another"), 401),
        (("v2",), "", 401),
    ],
)
async def test_a_second_signature_names_account_and_direction(
    versions: tuple[Version, ...], shown: str, status: int
) -> None:
    app = Webhook("alpha", Signing((SECRET,), "alpha", versions), Inbox().accept, Shelf(), lambda: NOW)
    headers = {"X-Segue-Timestamp": str(int(NOW)), "X-Segue-Signature": shown}
    assert (await knock(app, BODY, headers)).status_code == status


async def test_two_secrets_work_at_once_and_the_new_one_signs() -> None:
    signing = Signing((Secret("new"), SECRET), "alpha", ("v1", "v2"))
    app = Webhook("alpha", signing, Inbox().accept, Shelf(), lambda: NOW)
    for key in (KEY, "new"):
        both = ",".join(proved(version, BODY, key) for version in ("v1", "v2"))
        headers = {"X-Segue-Timestamp": str(int(NOW)), "X-Segue-Signature": both}
        assert (await knock(app, BODY, headers)).status_code in (200, 202)
    mixed = f"{proved('v1', BODY)},{proved('v2', BODY, 'new')}"
    headers = {"X-Segue-Timestamp": str(int(NOW)), "X-Segue-Signature": mixed}
    assert (await knock(app, BODY, headers)).status_code == 401, "one caller knows one secret"
    ours = signing.sign(BODY, NOW)["X-Segue-Signature"]
    assert ours == f"{proved('v1', BODY, 'new')},{proved('v2', BODY, 'new', 'out')}"
