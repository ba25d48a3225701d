"""Who is let in to a window, what they may send, and that nothing is lost when the gateway dies."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from websockets.asyncio.client import connect, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from segue.changes import audit
from segue.changes.audit import Event
from segue.changes.people import browsers
from segue.cli.gateway import SOCKET
from segue.core.contracts.files import FileStore
from segue.core.people import Allowance, Allowances
from segue.core.windows import HOSTS
from segue.runtime.files.database import DatabaseFiles
from segue.runtime.files.folder import Folder
from segue.runtime.windows import routes
from segue.runtime.windows.frames import (
    AcceptedFrame,
    FoundFrame,
    NoticeFrame,
    OpenRequest,
    RefusedFrame,
    SearchRequest,
    TranscriptFrame,
)
from segue.runtime.windows.local import Local
from segue.runtime.windows.routes import Windows
from segue.runtime.windows.sign_in import token_in
from segue.testing.agents import EchoAgent
from segue.testing.asgi import post
from tests.clients import http_client
from tests.runtime.house import Guest, House, house
from tests.served import Served, served


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path, EchoAgent()) as made:
        yield made


async def closed(guest: Guest) -> int:
    """The code that a window is closed with, before it is shown anything."""
    with pytest.raises(ConnectionClosed) as told:
        await guest.socket.recv()
    assert told.value.rcvd is not None
    return told.value.rcvd.code


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Cookie": "segue=nonsense"},
        {"Cookie": "segue=0123456789abcdef.0123"},
        {"Authorization": "Bearer nonsense"},
        {"Authorization": "Bearer "},
    ],
)
async def test_who_is_not_signed_in_sees_nothing(here: House, headers: dict[str, str]) -> None:
    async with here.window({"Origin": here.url, **headers}) as guest:
        assert await closed(guest) == 4401


async def test_a_person_has_so_many_windows_open_and_no_more(tmp_path: Path) -> None:
    two = Allowances(person=Allowance(windows=2))
    async with house(tmp_path, EchoAgent(), limits=two, hosts=()) as here:
        store = here.gateway.store
        # Terminal and page are one person, who isn't the host.
        host, *others = [await store.person(identity) for identity in HOSTS]
        for other in others:
            await store.link(host, other)
        async with here.terminal() as terminal:
            await terminal.opened()
            async with here.page() as page:
                await page.opened()
                async with here.terminal() as third:
                    told = (await third.shown(NoticeFrame)).text
                    assert told.startswith("window: you have 2 open, which is as many as you may. Close one")
                    assert third.had(TranscriptFrame) == []
            async with here.page() as again:
                while isinstance(await again.frame(), NoticeFrame):
                    # The one that closed isn't gone yet.
                    await again.sends(OpenRequest())
                await again.opened()
        facts = await store.driver.read(audit.newest, 50)
        assert ("limited", "windows") in [(noted.fact.event, noted.fact.detail) for noted in facts]


async def test_the_host_opens_as_many_windows_as_they_like(tmp_path: Path) -> None:
    async with (
        house(tmp_path, EchoAgent(), limits=Allowances(person=Allowance(windows=1))) as here,
        here.terminal() as one,
        here.page() as two,
        here.page() as three,
    ):
        for guest in (one, two, three):
            await guest.opened()
            assert guest.had(NoticeFrame) == []


async def test_a_wrong_token_is_not_made_good_by_a_cookie(here: House) -> None:
    async with here.page(Authorization="Bearer nonsense") as guest:
        assert await closed(guest) == 4401


@pytest.mark.parametrize("origin", ["http://evil.example.org", "null", "", "http://127.0.0.1:1", "http://localhost"])
async def test_another_sites_page_is_refused(here: House, origin: str) -> None:
    async with here.window({"Cookie": here.cookie(), "Origin": origin}) as guest:
        assert await closed(guest) == 4403
    async with here.window({"Cookie": here.cookie()}) as guest:
        assert await closed(guest) == 4403


async def test_another_name_is_refused(here: House) -> None:
    port = int(here.url.rpartition(":")[2])
    with pytest.raises(InvalidStatus) as told:
        await connect(f"ws://evil.example.org:{port}/live", host="127.0.0.1", port=port, proxy=None)
    assert told.value.response.status_code == 421


@pytest.mark.parametrize(("body", "status"), [(b"a=1&b=1&c=1&d=1&e=1", 400), (b"code=" + b"x" * 5000, 413)])
async def test_a_sign_in_takes_a_code_and_no_more(here: House, body: bytes, status: int) -> None:
    async with http_client(base_url=here.url) as browser:
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        assert (await browser.post("/signin", content=body, headers=kind)).status_code == status


async def test_a_link_signs_in_once_and_its_code_leaves_the_address(here: House) -> None:
    async with http_client(base_url=here.url) as browser:
        stranger = await browser.get("/")
        assert (stranger.status_code, "isn't signed in" in stranger.text) == (401, True)
        link = here.sign_in.link()
        for _ in range(2):
            shown = await browser.get(link)
            assert (shown.status_code, "set-cookie" in shown.headers) == (200, False), "looking uses nothing up"
            assert '<form method="post" action="/signin">' in shown.text
        answer = await browser.post("/signin", data={"code": link.partition("=")[2]})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        given = answer.headers["set-cookie"].lower()
        assert "httponly" in given
        assert "samesite=lax" in given
        page = await browser.get("/")
        assert page.status_code == 200
        assert page.headers["content-security-policy"].startswith("default-src 'self'")
        assert page.headers["cache-control"] == "no-store"
    async with http_client(base_url=here.url) as other:
        assert "set-cookie" not in (await other.post("/signin", data={"code": link.partition("=")[2]})).headers
        assert (await other.get("/")).status_code == 401


async def test_what_a_link_says_is_shown_as_words(here: House) -> None:
    async with http_client(base_url=here.url) as browser:
        page = await browser.get("/signin", params={"code": '"><script>alert(1)</script>'})
        assert "<script>alert" not in page.text
        assert "form-action 'self'" in page.headers["content-security-policy"]


async def test_a_browser_that_signs_out_is_out_and_its_open_windows_close(
    here: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "_LOOKED", 0.01)
    cookie, other = here.cookie(), here.cookie()
    async with here.page(cookie) as open_here, here.page(other) as elsewhere:
        await open_here.opened()
        await elsewhere.opened()
        async with http_client(base_url=here.url, headers={"Cookie": cookie}) as browser:
            assert (await browser.get("/")).status_code == 200
            assert (await browser.post("/signout")).headers["location"] == "/"
            assert (await browser.get("/")).status_code == 401
        assert await closed(open_here) == 4401
        assert await elsewhere.told("/who"), "the other one goes on"
    events = [noted.fact.event for noted in await here.gateway.store.driver.read(audit.newest, 9)]
    assert Event.SIGNED_OUT in events


async def test_a_new_key_signs_every_browser_out(here: House) -> None:
    cookie = here.cookie()
    await here.gateway.store.driver.write(browsers.rotate, browsers.KEY, "ab" * 32, 0.0)
    async with here.window({"Cookie": cookie, "Origin": here.url}) as guest:
        assert await closed(guest) == 4401


async def test_behind_tls_a_cookie_is_for_tls_alone(here: House, tmp_path: Path) -> None:
    place, url = Local("web"), "https://segue.test"
    windows = Windows(here.gateway, here.sign_in, (place, place), Folder(tmp_path), "ann", url)
    code = here.sign_in.link().partition("=")[2]
    answer = await post(Starlette(routes=windows.routes()), "/signin", f"code={code}".encode(), {"Host": "segue.test"})
    given = answer.headers["set-cookie"].lower()
    assert given.startswith("__host-segue=")
    assert "secure" in given
    assert "path=/" in given
    assert "domain" not in given


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("page.js", 200),
        ("markdown.js", 200),
        ("style.css", 200),
        ("vendored/preact-htm.js", 200),
        ("vendored", 404),
        ("nope.js", 404),
        ("..%2Fcli%2Fmain.py", 404),
        ("%2e%2e", 404),
    ],
)
async def test_only_the_pages_own_files_are_served(here: House, name: str, status: int) -> None:
    async with http_client(base_url=here.url) as browser:
        assert (await browser.get(f"/page/{name}")).status_code == status


@pytest.mark.parametrize("kind", ["folder", "database"])
async def test_a_kept_file_is_saved_by_whoever_signed_in(here: House, tmp_path: Path, kind: str) -> None:
    async def content() -> AsyncIterator[bytes]:
        yield b"<script>alert(1)</script>"

    files: FileStore = Folder(tmp_path) if kind == "folder" else DatabaseFiles(here.gateway.store.driver)
    file = await files.keep("a page.html", "text/html", content())
    windows = Windows(here.gateway, here.sign_in, (), files, "ann", here.url)
    app = httpx2.ASGITransport(Starlette(routes=windows.routes()))
    async with httpx2.AsyncClient(transport=app, base_url=here.url) as browser:
        assert (await browser.get(f"/{file.where}/a page.html")).status_code == 401
        for shown in ({"Cookie": here.cookie()}, {"Authorization": f"Bearer {token_in(here.folder)}"}):
            answer = await browser.get(f"/{file.where}/a page.html", headers=shown)
            assert (answer.status_code, answer.content) == (200, b"<script>alert(1)</script>")
            assert answer.headers["content-length"] == str(file.size)
            assert answer.headers["content-type"] == "application/octet-stream"
            assert answer.headers["content-disposition"] == "attachment; filename*=utf-8''a%20page.html"
            assert answer.headers["x-content-type-options"] == "nosniff"
            missing = f"/files/00/{'0' * 64}/a.html"
            assert (await browser.get(missing, headers=shown)).status_code == 404


@pytest.mark.parametrize(
    "garbage",
    [
        "",
        "nonsense",
        "[]",
        "{}",
        '{"kind": "nothing"}',
        '{"kind": "say", "text": 1, "id": "x"}',
        '{"kind": "say", "text": "no id"}',
        '{"kind": "say", "text": "\\ud800", "id": "m1"}',
        '{"kind": "say", "text": "a\\u0000b", "id": "m2"}',
        '{"kind": "say", "text": "tea", "id": "m3", "more": 1}',
        '{"kind": "resume", "session": "\\u0000"}',
        '{"kind": "earlier", "cursor": "nonsense"}',
        '{"kind": "open"}',
        '{"kind": "say", "id": "a\\u0000b", "text": "tea"}',
        '{"kind": "say", "id": "", "text": "tea"}',
        "[" * 100_000,
        b"\xff\xfe",
        b"",
    ],
    ids=lambda garbage: str(garbage)[:30],
)
async def test_garbage_gets_a_notice_and_the_window_stays_open(here: House, garbage: str | bytes) -> None:
    async with here.page() as page:
        await page.opened()
        await page.socket.send(garbage)
        told = await page.until(lambda frame: isinstance(frame, NoticeFrame | RefusedFrame))
        assert isinstance(told, NoticeFrame | RefusedFrame)
        assert told.text
        await page.says("tea")
        await page.shows("tea", "tea")


@pytest.mark.parametrize("words", ["", "\"'*", "\x00", "a" * 10_000, "AND OR NOT"])
async def test_any_words_can_be_searched_for(here: House, words: str) -> None:
    async with here.page() as page:
        await page.opened()
        await page.sends(SearchRequest(words))
        told = await page.until(lambda frame: isinstance(frame, FoundFrame | NoticeFrame))
        assert not isinstance(told, FoundFrame) or told.sessions == ()
        await page.says("tea")
        await page.shows("tea", "tea")


async def test_a_client_that_vanishes_disturbs_nobody(here: House) -> None:
    async with here.terminal() as terminal:
        await terminal.says("tea")
        await terminal.shows("tea", "tea")
        async with here.page() as page:
            await page.opened()
            page.socket.transport.abort()
        await terminal.says("milk")
        await terminal.shows("tea", "tea", "milk", "milk")


async def terminal_of(gateway: Served) -> Guest:
    headers = {"Authorization": f"Bearer {token_in(gateway.home)}", "X-Segue-User": "ann"}
    path = str(gateway.home / SOCKET)
    guest = Guest(await unix_connect(path, "ws://localhost/live", additional_headers=headers))
    await guest.sends(OpenRequest())
    return guest


async def test_a_gateway_that_is_killed_and_started_again_has_everything(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway:
        before = await terminal_of(gateway)
        await before.says("say tea", "m1")
        await before.shows("say tea", "tea")
        # Accepted is durable: whatever happens from here on, it is answered once.
        await before.says("say milk", "m2")
        await before.until(lambda frame: frame == AcceptedFrame("m2"))
        await gateway.end()
        await before.socket.wait_closed()
        await gateway.start()
        after = await terminal_of(gateway)
        await after.says("say milk", "m2")
        await after.shows("say tea", "tea", "say milk", "milk")
        await after.says("say sugar")
        await after.shows("say tea", "tea", "say milk", "milk", "say sugar", "sugar")
        await asyncio.gather(before.socket.close(), after.socket.close())
