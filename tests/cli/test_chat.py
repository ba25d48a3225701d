import asyncio
import json
import re
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from segue.cli.terminal.client import connected
from segue.core.lanes import Person
from segue.core.values import SessionId
from segue.runtime.windows.frames import GrowingFrame
from segue.store import Store
from tests.cli.conftest import Home
from tests.cli.test_serve import run, serve
from tests.clients import http_client
from tests.forge import done


def test_one_message_is_answered_without_a_gateway(home: Home) -> None:
    (home.path / "segue.toml").write_text("[server]\nport = 1")
    done = home.segue("chat", "-m", "say good morning")
    assert (done.exit_code, done.stdout) == (0, "good morning\n")
    reply = home.json("chat", "-m", "what did I say first?")
    assert "say good morning" in reply["text"]
    assert (reply["turn"], reply["state"], reply["title"]) == (2, "answered", "")
    [session] = home.json("sessions", "list")
    assert reply["session"] == session["id"]


def test_a_command_is_answered_too(home: Home) -> None:
    home.segue("chat", "-m", "say hello")
    reply = home.json("chat", "-m", "/title Greetings")
    assert (reply["session"], reply["turn"]) == (None, 0)
    assert "Greetings" in reply["text"]
    assert home.json("chat", "-m", "say bye")["title"] == "Greetings"


def test_what_the_gateway_does_itself_is_told_too(home: Home) -> None:
    home.segue("chat", "-m", "say hello")
    home.segue("chat", "-m", "say bye")
    reply = home.json("chat", "-m", "/undo")
    assert (reply["text"], reply["state"]) == ("Took back the last exchange.", "answered")
    assert home.json("chat", "-m", "/compress")["text"].startswith("A summary stands for 2 messages now.")
    assert home.json("chat", "-m", "/undo 5")["text"] == "There is nothing to take back."
    assert home.json("chat", "-m", "/retry")["text"] == "hello"


def test_a_named_session_is_spoken_to_and_the_terminal_stays_where_it_is(home: Home) -> None:
    first = home.json("chat", "-m", "remember the tea is in the blue tin")["session"]
    home.segue("sessions", "title", first, "Tea")
    home.segue("chat", "-m", "/new")
    second = home.json("chat", "-m", "say two")["session"]
    for name in ("Tea", first, "Tea"):
        reply = home.json("chat", "-m", "what do you remember?", "--session", name)
        assert (reply["session"], reply["title"]) == (first, "Tea")
        assert "blue tin" in reply["text"]
    assert home.json("chat", "-m", "say three")["session"] == second != first


def test_a_script_leaves_no_lane_behind(home: Home) -> None:
    first = home.json("chat", "-m", "say tea")["session"]
    before = home.json("lanes")
    home.json("chat", "-m", "say milk", "--session", first)
    assert home.json("lanes") == before


def test_an_unknown_session_is_a_mistake_and_nothing_is_said(home: Home) -> None:
    done = home.segue("chat", "-m", "hello", "--session", "nope")
    assert done.exit_code == 2
    assert done.stderr == 'Error: session: none of yours goes by "nope". `segue sessions list` lists them.\n'
    assert home.json("sessions", "list") == []


def test_a_closed_session_is_opened_again_as_by_resume(home: Home) -> None:
    id = SessionId(home.json("chat", "-m", "hello")["session"])

    async def close(store: Store, host: Person) -> None:
        await store.close_session(id, host)

    home.do(close)
    reply = home.json("chat", "-m", "what did I say first?", "--session", id)
    assert (reply["session"], "hello" in reply["text"]) == (id, True)


@pytest.mark.parametrize("arguments", [[], ["-m", " "], ["-m"]])
def test_nothing_to_say_is_a_mistake(home: Home, arguments: list[str]) -> None:
    assert home.segue("chat", *arguments).exit_code == 2


def test_what_comes_by_standard_input_is_said(home: Home) -> None:
    done = home.segue("chat", said="say it\nin two lines\n")
    assert done.exit_code == 0, done.stderr
    assert "in two lines" in home.segue("sessions", "show", home.json("sessions", "list")[0]["id"]).stdout
    assert "it is blank" in home.segue("chat", said="  \n").stderr


def test_a_turn_that_fails_is_exit_code_1(home: Home) -> None:
    nobody = 'kind = "model"\nmodel = "openai:none"\nbase_url = "http://127.0.0.1:9/v1"\nretries = 0'
    (home.path / "segue.toml").write_text(f"[turns]\nattempts = 1\n[agent]\n{nobody}\n")
    done = home.segue("chat", "-m", "hello")
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: The turn was failed, not answered.")
    assert done.stdout.strip()


async def test_the_traceback_of_ones_own_agent_is_shown_with_debug(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("async def reply(text: str) -> str:\n    return {}[text]\n")
    async with serve(tmp_path, "mine:reply"):
        code, out, told = await done("chat", "-m", "the tea", "--debug", home=tmp_path)
        assert (code, "The agent failed: KeyError: 'the tea'" in out) == (1, True)
        place = f'File "{tmp_path}/mine.py", line 2, in reply\n    return {{}}[text]\nKeyError\n'
        assert re.fullmatch(rf"turn 1 of session \w+ failed, at:\n  {re.escape(place)}Error: The turn .*\n", told), told
        assert "the tea" not in told, "the log has nobody's words"
        code, out, told = await done("talk", "--debug", home=tmp_path, typed="the tea\n")
        assert (code, "line 2, in reply" in told) == (0, True)
        _, _, told = await done("chat", "-m", "the tea", home=tmp_path)
        assert "line 2" not in told


async def test_a_running_gateway_answers_and_gives_links(tmp_path: Path) -> None:
    (tmp_path / "segue.toml").write_text("")
    async with serve(tmp_path) as here:
        async with run(tmp_path, "chat", "-m", "say good morning") as chat:
            assert await chat.end() == (0, "good morning\n", "")
        links = []
        for arguments in (["signin"], ["signin", "--json"]):
            async with run(tmp_path, *arguments) as link:
                code, out, _ = await link.end()
            assert code == 0
            links.append(json.loads(out)["link"] if "--json" in arguments else out.strip())
        async with http_client() as client:
            assert links[0].startswith(f"{here.url}/signin?code=")
            assert "set-cookie" not in (await client.get(links[0])).headers
            answers = []
            for printed in (links[0], links[0], links[1]):
                address, _, given = printed.partition("?code=")
                answers.append((await client.post(address, data={"code": given})).headers.get("set-cookie", ""))
            assert [answer.partition("=")[0] for answer in answers] == ["segue", "", "segue"]
            assert (await client.post(f"{here.url}/link")).status_code == 401
            bad = {"Authorization": "Bearer nope"}
            assert (await client.post(f"{here.url}/link", headers=bad)).status_code == 401
            assert (await client.get(f"{here.url}/link")).status_code == 405
        here.signal(signal.SIGTERM)
        assert (await here.end())[0] == 0


def test_without_a_gateway_there_is_no_link(home: Home) -> None:
    done = home.segue("signin")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"Error: No gateway answers in {home.path}. Start one with `segue serve`.\n"
    assert list(home.path.iterdir()) == []


async def test_two_at_once_without_a_gateway_are_each_answered_once(tmp_path: Path) -> None:
    async def chat(text: str) -> tuple[int, str, str]:
        async with run(tmp_path, "chat", "-m", f"say {text}", "--json") as here:
            return await here.end()

    answers = await asyncio.gather(chat("one"), chat("two"), chat("three"))
    assert [(code, err) for code, _, err in answers] == [(0, "")] * 3
    for text, (_, out, _) in zip(("one", "two", "three"), answers, strict=True):
        assert text in json.loads(out)["text"].split()
    async with run(tmp_path, "sessions", "list", "--json") as here:
        sessions = json.loads((await here.end())[1])
    said = 0
    for session in sessions:
        async with run(tmp_path, "sessions", "show", session["id"], "--json") as here:
            entries = json.loads((await here.end())[1])["entries"]
        said += sum(entry["author"]["role"] == "person" for entry in entries)
    assert said == 3


async def test_a_gateway_that_dies_meanwhile_costs_neither_the_answer_nor_a_second_question(tmp_path: Path) -> None:
    (tmp_path / "segue.toml").write_text("[replica]\nlease = 1")
    async with serve(tmp_path) as here, AsyncExitStack() as stack:
        async with run(tmp_path, "chat", "-m", "hello") as first:
            assert (await first.end())[0] == 0
        window = await stack.enter_async_context(connected(tmp_path))
        chat = await stack.enter_async_context(run(tmp_path, "chat", "-m", "count to 8 slowly", "--json"))
        async for frame in window.frames():
            if isinstance(frame, GrowingFrame):
                break
        here.signal(signal.SIGKILL)
        code, out, err = await chat.end()
    assert (code, err) == (0, "")
    reply = json.loads(out)
    assert (reply["turn"], reply["state"]) == (2, "answered")
    assert reply["text"].count("8") == 1
