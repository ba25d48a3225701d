"""The tools over HTTP, with MCP's own client: what people's programs can do, once, and nobody else's."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

from segue.changes.people import grants, tokens
from segue.changes.people.grants import Scope
from segue.changes.people.tokens import Token, TokenScope
from segue.core.contracts.agents import Event, ToolServer, Work
from segue.core.lanes import account_key
from segue.core.messages import Text
from segue.core.values import PersonId, SessionId
from segue.core.windows import HOSTS
from segue.runtime.mcp import door
from segue.runtime.server.listeners import Listener
from segue.store import Store
from segue.testing.agents import said
from segue.testing.chats import Chat, Someone
from segue.testing.personas import WhatsApp
from segue.testing.waits import PATIENCE
from tests.chatting import by_function
from tests.runtime.house import House, house

WAIT = 50
ACCEPTED = {"Accept": "application/json, text/event-stream"}
T = TypeVar("T")


class Program:
    """A program that has a token, and MCP's client."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def does(self, tool: str, **arguments: Any) -> Any:
        """What a call comes back with."""
        done = await self.client.call_tool(tool, arguments)
        assert not done.is_error, done.content
        return done.structured_content

    async def fails(self, tool: str, **arguments: Any) -> str:
        """Why a call can't be done."""
        done = await self.client.call_tool(tool, arguments)
        assert done.is_error, done.structured_content
        [content] = done.content
        assert isinstance(content, TextContent)
        return content.text


@asynccontextmanager
async def program(url: str, token: str, mode: str = "auto") -> AsyncIterator[Program]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=90) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield Program(client)


async def given(
    store: Store,
    person: PersonId,
    words: str,
    scope: TokenScope = TokenScope.MCP,
    only: SessionId | None = None,
    days: float = 1.0,
) -> str:
    """A token of a person's."""
    at = time.time()
    token = Token(f"id-{words}", person, scope, only, "", at - 1, at + days * 86400, None, None)
    await store.driver.write(tokens.create, token, tokens.digest(words), person, at)
    return words


class Street:
    """A gateway with a chat in which people talk, and programs of theirs."""

    def __init__(self, here: House, platform: WhatsApp) -> None:
        self.here = here
        self.store = here.gateway.store
        self.platform = platform

    async def meets(self, name: str) -> "Neighbour":
        """Somebody says hello in a chat of their own."""
        someone = self.platform.person(name)
        chat = self.platform.dm(someone)
        someone.says(f"hello of {name}", chat)
        await chat.reads_some()
        person = await self.store.person(someone.identity)
        account = account_key(chat.address.platform, chat.address.account)
        await self.store.driver.write(grants.grant, account, person.id, Scope.DM, "test", person.id, time.time())
        return Neighbour(person.id, someone, chat)


@dataclass
class Neighbour:
    """Somebody who talks in a chat of their own."""

    id: PersonId
    someone: Someone
    chat: Chat

    def says(self, text: str) -> None:
        self.someone.says(text, self.chat)

    async def replies(self) -> list[str]:
        return self.chat.replies


@asynccontextmanager
async def street(folder: Path) -> AsyncIterator[Street]:
    platform = WhatsApp()
    async with (
        house(folder, by_function(lambda work: [said(work) or "Here we are."]), platform.adapter()) as here,
        platform.reaching(here.gateway.webhooks()),
    ):
        yield Street(here, platform)


async def came(look: Callable[[], Awaitable[T]], so: Callable[[T], object]) -> T:
    """What is there once it is so."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if so(found := await look()):
                return found
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_program_begins_a_conversation_goes_on_with_it_and_finds_it_again(tmp_path: Path, mode: str) -> None:
    async with street(tmp_path) as there:
        ann = await there.meets("Ann")
        async with program(there.here.url, await given(there.store, ann.id, "anns"), mode) as anns:
            begun = await anns.does("sessions_spawn", key="1", task="count the cats", label="Cats", wait=WAIT)
            assert (begun["state"], begun["reply"]) == ("answered", "count the cats")
            sent = await anns.does("sessions_send", key="2", label="cats", message="and dogs", wait=WAIT)
            assert (sent["session"], sent["reply"]) == (begun["session"], "and dogs")
            history = await anns.does("sessions_history", session=begun["session"])
            words = [(entry["by"], entry["text"]) for entry in history["entries"]]
            assert words == [(by, one) for one in ("count the cats", "and dogs") for by in ("person", "agent")]
            listed = await anns.does("sessions_list")
            assert {(one["title"], one["state"]) for one in listed["sessions"]} == {("Cats", "open"), ("", "open")}
            found = await came(lambda: anns.does("sessions_search", words="dogs"), lambda told: told["found"])
            assert found["found"] == [{"session": begun["session"], "title": "Cats", "text": "and dogs"}]
            closed = await anns.does("sessions_close", label="Cats")
            assert closed["state"] == "closed"
            assert (await anns.does("sessions_close", session=begun["session"]))["note"].startswith("It was closed")
            assert "closed" in await anns.fails("sessions_send", key="3", session=begun["session"], message="more")


async def test_a_call_that_is_made_again_with_its_key_does_nothing_twice(tmp_path: Path) -> None:
    async with street(tmp_path) as there:
        ann = await there.meets("Ann")
        token = await given(there.store, ann.id, "anns")
        async with program(there.here.url, token) as anns:
            begun = await anns.does("sessions_spawn", key="b", task="begin", wait=WAIT)
            calls: list[tuple[str, dict[str, Any]]] = [
                ("sessions_spawn", {"key": "b", "task": "begin", "wait": WAIT}),
                ("sessions_send", {"key": "s", "session": begun["session"], "message": "go on", "wait": WAIT}),
                ("schedule", {"key": "c", "task": "look", "when": "in 2h", "deliver": f"whatsapp:{ann.chat.id}"}),
                ("notes_write", {"key": "n", "text": "likes cats"}),
            ]
            firsts = [await anns.does(tool, **arguments) for tool, arguments in calls]
        async with program(there.here.url, token) as again:
            assert [await again.does(tool, **arguments) for tool, arguments in calls] == firsts
            assert len((await again.does("sessions_history", session=begun["session"]))["entries"]) == 4
            assert len((await again.does("schedules_list"))["schedules"]) == 1
            assert len((await again.does("notes_read"))["notes"]) == 1
            more = await again.does("sessions_send", **(calls[1][1] | {"key": "another"}))
            assert (more["reply"], len(await there.store.path(SessionId(begun["session"])))) == ("go on", 6)
            [work] = (await again.does("schedules_list"))["schedules"]
            assert (await again.does("schedule_cancel", id=work["id"]))["state"] == "cancelled"
            assert "No scheduled work" in await again.fails("schedule_cancel", id=work["id"])


async def test_a_wrong_argument_is_a_clear_failure_of_the_tool(tmp_path: Path) -> None:
    async with street(tmp_path) as there:
        ann = await there.meets("Ann")
        async with program(there.here.url, await given(there.store, ann.id, "anns")) as anns:
            assert (await anns.fails("sessions_send", key="1", message="hi")).startswith("label: it is missing")
            assert (await anns.fails("sessions_send", label="Cats", message="hi")).startswith("key: it is missing")
            assert "isn't one" in await anns.fails("ask", key="k" * 101, question="Well?")
            assert (await anns.fails("sessions_history", colour="red")).startswith("colour: there is no such argument")
            assert (await anns.fails("sessions_spawn", key="1", task="", wait=1)).startswith("task:")
            assert "No session of yours" in await anns.fails("sessions_history", label="Nothing")
            assert (await anns.fails("schedule", key="1", task="x", when="one day")).startswith("when:")
            assert (await anns.fails("handoff", key="1", destination="mars", session="x")).startswith("No session")
            assert "There are " in await anns.fails("sessions_dance")


async def test_one_persons_token_sees_nothing_of_another_and_one_for_a_session_nothing_else(tmp_path: Path) -> None:
    async with street(tmp_path) as there:
        ann, bob = await there.meets("Ann"), await there.meets("Bob")
        async with (
            program(there.here.url, await given(there.store, ann.id, "anns")) as anns,
            program(there.here.url, await given(there.store, bob.id, "bobs")) as bobs,
        ):
            own = await anns.does("sessions_spawn", key="1", task="the canary sings", label="Canary", wait=WAIT)
            await anns.does("notes_write", key="2", text="has a canary")
            work = await anns.does("schedule", key="3", task="sing", when="in 2h", deliver=f"whatsapp:{ann.chat.id}")
            other = await anns.does("sessions_spawn", key="4", task="something else", wait=WAIT)
            for tool, arguments in (
                ("sessions_history", {"session": own["session"]}),
                ("sessions_history", {"label": "Canary"}),
                ("sessions_send", {"key": "1", "session": own["session"], "message": "hi"}),
                ("sessions_close", {"session": own["session"]}),
                ("schedule_cancel", {"id": work["id"]}),
                ("handoff", {"key": "2", "session": own["session"], "destination": "whatsapp"}),
            ):
                missing = {**arguments, **{k: "nothing" for k in ("session", "label", "id") if k in arguments}}
                assert await bobs.fails(tool, **arguments) == await bobs.fails(tool, **missing), tool
            seen = [await bobs.does(t) for t in ("sessions_list", "schedules_list", "notes_read")]
            seen += [await bobs.does("sessions_search", words="canary")]
            assert "canary" not in str(seen).lower()
            assert own["session"] not in str(seen)
            only = await given(there.store, ann.id, "its", only=SessionId(own["session"]))
            async with program(there.here.url, only) as its:
                assert {tool.name for tool in (await its.client.list_tools()).tools}.isdisjoint(
                    {"sessions_spawn", "sessions_search", "notes_read"}
                )
                assert [s["session"] for s in (await its.does("sessions_list"))["sessions"]] == [own["session"]]
                assert (await its.does("sessions_history", session=own["session"]))["entries"]
                assert "No session" in await its.fails("sessions_history", session=other["session"])
                assert (await its.does("schedules_list"))["schedules"] == []


async def test_a_token_that_doesnt_count_is_refused_in_words(tmp_path: Path) -> None:
    async with street(tmp_path) as there, httpx2.AsyncClient(base_url=there.here.url, trust_env=False) as http:
        ann = await there.meets("Ann")
        await given(there.store, ann.id, "over", days=0.0)
        await given(there.store, ann.id, "editors", TokenScope.ACP)
        gone = await given(there.store, ann.id, "gone")
        await there.store.driver.write(tokens.revoke, f"id-{gone}", ann.id, time.time())
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}

        async def told(token: str | None, **more: str) -> tuple[int, str]:
            shown = {"Authorization": f"Bearer {token}"} if token else {}
            answer = await http.post("/mcp", json=call, headers=ACCEPTED | shown | more)
            return answer.status_code, str(answer.json().get("error", ""))

        assert await told("over") == (401, "That token has ended. `segue tokens create` makes a new one.")
        assert await told("gone") == (401, "That token was revoked. Ask the host of this Segue for a new one.")
        assert (await told("editors"))[1].startswith("That token is for something else.")
        assert (await told("guess"))[1].startswith("That token isn't known here.")
        assert (await told(None))[0] == 401
        good = await given(there.store, ann.id, "good")
        assert await told(good) == (200, "")
        assert (await told("guess"))[0] == 429
        assert (await told(good, Origin="https://elsewhere.example"))[0] == 403
        assert (await told(good, Origin=there.here.url))[0] == 200
        assert (await http.post("/mcp", json=call, headers={"Host": "elsewhere.example"})).status_code == 421


async def test_a_call_that_waits_answers_nobody_whose_token_was_revoked(tmp_path: Path) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    class Slow:
        async def answer(self, work: Work) -> AsyncIterator[Event]:
            begun.set()
            await go_on.wait()
            yield Text("the secret")

    platform = WhatsApp()
    async with house(tmp_path, Slow(), platform.adapter()) as here:
        store, ann = here.gateway.store, platform.person("Ann").identity
        person = (await store.person(ann, "Ann")).id
        async with program(here.url, await given(store, person, "anns")) as anns:
            waiting = asyncio.create_task(anns.fails("sessions_spawn", key="1", task="tell me", wait=WAIT))
            await begun.wait()
            await store.driver.write(tokens.revoke, "id-anns", person, time.time())
            go_on.set()
            assert await waiting == "That token was revoked. Ask the host of this Segue for a new one."


async def test_a_program_hands_a_conversation_off_and_asks_its_person_where_they_are(tmp_path: Path) -> None:
    async with street(tmp_path) as there:
        ann = await there.meets("Ann")
        async with program(there.here.url, await given(there.store, ann.id, "anns")) as anns:
            begun = await anns.does("sessions_spawn", key="1", task="plan the trip", wait=WAIT)
            asked = {"key": "q", "question": "Which day?", "choices": ["Monday", "Tuesday"]}
            there.here.gateway.programs.patience = 0.2
            assert (await anns.does("ask", **asked))["note"].startswith("Nobody has answered yet.")
            there.here.gateway.programs.patience = PATIENCE
            waiting = asyncio.create_task(anns.does("ask", **asked))
            await came(ann.replies, lambda replies: any("Which day?" in reply for reply in replies))
            ann.says("Tuesday")
            assert (await waiting)["answer"] == "Tuesday"
            assert (await anns.does("ask", **asked))["answer"] == "Tuesday"
            assert sum("Monday" in text for text in ann.chat.replies) == 1
            move = {"key": "2", "session": begun["session"], "destination": "whatsapp"}
            moved = await anns.does("handoff", **move)
            assert moved["state"] == "done", moved
            assert await anns.does("handoff", **move) == moved
            ann.says("thanks")
            await ann.chat.reads("thanks")
            texts = [entry.text for entry in await there.store.path(SessionId(begun["session"]))]
            assert (texts[0], texts[-1]) == ("plan the trip", "thanks")


async def test_the_tools_of_a_turn_are_lent_to_its_agents_program_while_it_runs(tmp_path: Path) -> None:
    servers: list[ToolServer] = []
    told: list[Any] = []

    class Lender:
        async def answer(self, work: Work) -> AsyncIterator[Event]:
            assert work.tool_server is not None
            servers.append(work.tool_server)
            url, _, _ = work.tool_server.url.rpartition("/mcp")
            async with program(url, work.tool_server.token) as own:
                names = {tool.name for tool in (await own.client.list_tools()).tools}
                assert names == {tool.name for tool in work.tools.offered}
                told.append(await own.does("sessions_list"))
            yield Text("done")

    async with house(tmp_path, Lender()) as here, here.terminal() as terminal:
        await terminal.opened()
        await terminal.says("hello")
        await terminal.shows("hello", "done")
        await terminal.says("again")
        await terminal.shows("hello", "done", "again", "done")
        assert servers[0] == servers[1]
        assert terminal.session is not None
        assert [one["this"] for one in told] == [terminal.session.id] * 2
        async with httpx2.AsyncClient(base_url=here.url, trust_env=False) as http:
            for token in (servers[0].token, servers[0].token[:-1] + "x"):
                shown = ACCEPTED | {"Authorization": f"Bearer {token}"}
                answer = await http.post("/mcp", json={}, headers=shown)
                assert answer.status_code == 401


async def test_a_gateway_without_the_library_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "_EXTRA", "no_such_library")
    async with street(tmp_path) as there, httpx2.AsyncClient(base_url=there.here.url, trust_env=False) as http:
        ann = await there.meets("Ann")
        shown = {"Authorization": f"Bearer {await given(there.store, ann.id, 'anns')}"}
        answer = await http.post("/mcp", json={}, headers=shown)
        assert (answer.status_code, "segue install" in answer.json()["error"]) == (501, True)
        assert there.here.gateway.programs.lent.url == ""


async def test_a_server_that_could_not_start_is_started_by_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with street(tmp_path) as there:
        ann = await there.meets("Ann")
        shown = ACCEPTED | {"Authorization": f"Bearer {await given(there.store, ann.id, 'anns')}"}
        async with httpx2.AsyncClient(base_url=there.here.url, trust_env=False) as http:
            with monkeypatch.context() as planted:
                planted.setattr(door, "import_module", _unreadable)
                assert (await http.post("/mcp", json={}, headers=shown)).status_code == 500
            assert (await http.post("/mcp", json={}, headers=shown)).status_code == 400


def _unreadable(name: str) -> object:
    raise OSError(24, "Too many open files", name)


@pytest.mark.parametrize(("host", "near"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1")])
def test_tools_are_lent_at_an_address_that_programs_of_this_machine_find(host: str, near: str) -> None:
    listener = Listener(host, 0)
    assert listener.near == f"http://{near}:{listener.port}"
    listener.close()


async def test_a_program_never_consents_for_its_person(tmp_path: Path) -> None:
    async with street(tmp_path) as there:
        ann = await there.meets("Ann")
        club = there.platform.group("club")
        ann.someone.says("hello all", club)
        await club.reads_some()
        host = await there.store.person(HOSTS[0])
        await there.store.link(host, await there.store.person(ann.someone.identity))
        host = await there.store.person(HOSTS[0])
        async with program(there.here.url, await given(there.store, host.id, "hosts")) as hosts:
            begun = await hosts.does("sessions_spawn", key="1", task="plans of the host", wait=WAIT)
            move = {"key": "2", "session": begun["session"], "destination": f"whatsapp:{club.address.chat}"}
            moving = asyncio.create_task(hosts.does("handoff", **move))
            await came(ann.replies, lambda replies: any("May they read all of it?" in reply for reply in replies))
            assert await there.store.lanes_of(SessionId(begun["session"])) == []
            ann.says("yes")
            assert (await moving)["state"] == "done"
            [tool] = [tool for tool in (await hosts.client.list_tools()).tools if tool.name == "handoff"]
            assert "others_may_read" not in str(tool)
