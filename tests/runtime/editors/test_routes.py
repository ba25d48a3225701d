"""Editors elsewhere, over a WebSocket with a person's token."""

import asyncio
from pathlib import Path

import httpx2
import pytest
from acp import RequestError
from websockets.exceptions import ConnectionClosed

from segue.changes.people import grants, tokens
from segue.changes.people.grants import Scope
from segue.changes.people.tokens import Token, TokenScope
from segue.core.lanes import Identity, Person, account_key
from segue.core.values import SessionId
from segue.core.windows import EDITOR, HOSTS
from segue.errors import Overloaded, Refusal
from segue.runtime.editors import routes
from segue.runtime.editors.routes import OwnWindow
from segue.runtime.files.folder import Folder
from segue.runtime.server.tokens import Tokens
from segue.runtime.windows.frames import CommandsFrame, CommandsRequest, OpenRequest
from segue.runtime.windows.local import Local
from segue.runtime.windows.routes import Windows
from segue.runtime.windows.window import Seat, Window
from segue.testing.agents import EchoAgent
from segue.testing.waits import PATIENCE
from tests.editors import Editor, editor_at, editor_in
from tests.runtime.house import House, house


async def token_of(here: House, person: Person, session: SessionId | None = None) -> str:
    store, shown = here.gateway.store, f"segue_{person.id}_{session}"
    made = Token(f"t-{shown}", person.id, TokenScope.ACP, session, "an editor", 1.0, 1e12, None, None)
    await store.driver.write(tokens.create, made, tokens.digest(shown), person.id, 1.0)
    return shown


async def talks(here: House, token: str, words: str) -> tuple[str, list[str]]:
    """Say something in a new session; returns that, and all that are listed."""
    async with editor_at(here.url, token) as (editor, _):
        await editor.begin()
        session = await editor.new()
        assert await editor.says(session, words) == "end_turn"
        assert editor.shows(session) == [("agent", words)]
        return session, await listed(editor)


async def listed(editor: Editor) -> list[str]:
    return [one.session_id for one in (await editor.agent.list_sessions()).sessions]


async def test_a_token_opens_its_persons_sessions_and_nobody_elses(tmp_path: Path) -> None:
    async with house(tmp_path, EchoAgent()) as here, here.at_socket():
        store = here.gateway.store
        host = await store.person(HOSTS[0])
        ann = await store.person(Identity("telegram", "bot", "7"), "Ann")
        account = account_key("telegram", "bot")
        await store.driver.write(grants.grant, account, ann.id, Scope.DM, "test", host.id, 1.0)
        hosts, anns = await token_of(here, host), await token_of(here, ann)
        his, all_his = await talks(here, hosts, "tea")
        hers, all_hers = await talks(here, anns, "cake")
        assert (all_his, all_hers) == ([his], [hers])
        assert {identity.user for identity in await store.identities(ann)} == {"7", ann.id}
        async with editor_at(here.url, anns) as (editor, _), editor_in(tmp_path) as at_home:
            await editor.begin()
            for refused in ("nothing", his):
                with pytest.raises(RequestError, match=f"No session of yours is called “{refused}”"):
                    await editor.load(refused)
            await editor.load(hers)
            assert editor.shows(hers) == [("person", "cake"), ("agent", "cake")]
            assert await listed(at_home) == [his]


async def test_a_token_that_doesnt_count_is_refused_and_one_that_is_revoked_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "LOOKED", 0.05)
    async with house(tmp_path, EchoAgent()) as here:
        store = here.gateway.store
        host = await store.person(HOSTS[0])
        shown = await token_of(here, host)
        one, _ = await talks(here, shown, "tea")
        for wrong in ("segue_none", await token_of(here, host, SessionId(one))):
            async with editor_at(here.url, wrong) as (_, socket):
                async with asyncio.timeout(PATIENCE):
                    await socket.wait_closed()
                assert socket.close_code == 4401
        async with editor_at(here.url, shown) as (editor, socket):
            await editor.begin()
            await store.driver.write(tokens.revoke, f"t-{shown}", host.id, 2.0)
            async with asyncio.timeout(PATIENCE):
                await socket.wait_closed()
            with pytest.raises((ConnectionError, ConnectionClosed, RequestError)):
                await editor.agent.list_sessions()


async def fails(*_: object) -> None:
    raise KeyError("nobody foresaw it")


async def test_a_request_that_fails_unforeseen_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path, EchoAgent()) as here:
        shown = await token_of(here, await here.gateway.store.person(HOSTS[0]))
        async with editor_at(here.url, shown) as (editor, _), asyncio.timeout(PATIENCE):
            await editor.begin()
            session = await editor.new()
            with monkeypatch.context() as planted:
                planted.setattr(Window, "say", fails)
                await editor.says(session, "tea")
            assert await editor.says(session, "cake") == "end_turn"
            assert str(editor.shows(session)).endswith("the details in the log.\\n\\ncake')]")


async def test_an_editor_whose_token_cannot_be_looked_up_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "LOOKED", 0.05)
    async with house(tmp_path, EchoAgent()) as here:
        shown = await token_of(here, await here.gateway.store.person(HOSTS[0]))
        async with editor_at(here.url, shown) as (editor, socket):
            await editor.begin()
            monkeypatch.setattr(Tokens, "bearer", fails)
            async with asyncio.timeout(PATIENCE):
                await socket.wait_closed()
            assert socket.close_code == 1011


async def test_wrong_tokens_are_counted_for_all_doors_together(tmp_path: Path) -> None:
    async with house(tmp_path, EchoAgent()) as here, httpx2.AsyncClient(trust_env=False) as client:
        codes = [
            (await client.post(f"{here.url}/mcp", headers={"Authorization": f"Bearer wrong{n}"})).status_code
            for n in range(5)
        ]
        assert codes == [401] * 5
        async with editor_at(here.url, "segue_none") as (_, socket):
            async with asyncio.timeout(PATIENCE):
                await socket.wait_closed()
            assert socket.close_reason == Refusal.TOO_MANY_TOKENS.value


async def test_requests_of_an_editor_that_reads_nothing_are_refused_and_the_others_answered(tmp_path: Path) -> None:
    async with house(tmp_path, EchoAgent()) as here:
        store = here.gateway.store
        host = await store.person(HOSTS[0])
        windows = Windows(here.gateway, here.sign_in, [Local(EDITOR)], Folder(tmp_path), "ann")
        window = OwnWindow(windows, Seat(host.id, host.name, identity=HOSTS[0]), OpenRequest(lane="mine"))
        await window.open()
        taken = 0
        with pytest.raises(Overloaded, match="requests of this conversation wait"):  # noqa: PT012 -- all before it are
            for taken in range(10_000):  # noqa: B007 -- it is how many were taken
                await window.ask(CommandsRequest())
        async with asyncio.timeout(PATIENCE):
            async for frame in window.frames():
                taken -= isinstance(frame, CommandsFrame)
                if not taken:
                    break
        await window.close()
