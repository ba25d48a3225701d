"""A conversation leaves the terminal and the command line for another place, in real processes."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from starlette.responses import JSONResponse

from tests.adapters.platform import Platform, platform, signed
from tests.cli.screens import terminal
from tests.cli.test_talk import piped
from tests.clients import http_client
from tests.forge import done
from tests.served import PATIENCE, served

CTRL_C = "\x03"
SETTINGS = """
[http.alpha]
secret = "file:{secret}"
callback = "{callback}"
opens_threads = true
public = true
home = {{ chat = "lobby", kind = "group" }}
"""


@asynccontextmanager
async def street(home: Path) -> AsyncIterator[Platform]:
    """A gateway with one more platform, whose home is a group."""
    async with platform() as there:
        secret = home / "secret"
        secret.write_text("s3cret")
        secret.chmod(0o600)
        (home / "segue.toml").write_text(SETTINGS.format(secret=secret, callback=there.url))
        async with served(home) as gateway:
            there.gateway = f"{gateway.url}/in/http/alpha"
            yield there


async def somebody_speaks(there: Platform, chat: str) -> None:
    """Somebody says something in a group on the platform, which is known from then on."""
    bob = {"id": "bob", "name": "Bob"}
    body = json.dumps({"id": "m", "chat": chat, "chat_kind": "group", "person": bob, "text": "say hello"}).encode()
    async with http_client() as client:
        answer = await client.post(there.gateway, content=body, headers=signed("s3cret", body, time.time()))
    assert answer.status_code == 202


async def segue(home: Path, *arguments: str) -> tuple[int, str, str]:
    """What a command prints, and how it ends."""
    async with asyncio.timeout(PATIENCE):
        return await done(*arguments, home=home)


async def test_the_terminal_shows_the_way_and_leaves_once_it_is_there(tmp_path: Path) -> None:
    async with street(tmp_path) as there, terminal(tmp_path) as here:
        here.types("say tea\r")
        await here.until(lambda screen: "\ntea" in screen)
        here.types("/title Tea\r")
        await here.shows("This session is called Tea.")
        here.types("/handoff\r")
        await here.shows("1. http.alpha: everyone in lobby can read there")
        await here.shows("to me in a private chat on http.alpha.")
        assert here.text.index("Where does it go?") < here.text.index("Or send /link")
        here.types("1\r")
        await here.shows("Handing “Tea” off to http.alpha")
        assert await here.leaves() == 0
        assert "To http.alpha: sent" in here.text
        assert "\n>\n" not in here.text, "nobody is asked any more"
        assert "This conversation goes on in http.alpha." in here.text
        assert "To come back, run `segue`" in here.text
        opened, said = there.calls
        assert (opened["kind"], opened["title"], opened["address"]["chat"]) == ("open_thread", "Tea", "lobby")
        assert said["address"]["thread"] == "t1"
        assert (
            said["text"] == "Here I am. I remember 2 messages: 1 of yours and 1 of mine. The last of it was “say tea”."
        )


async def test_ctrl_c_cancels_it(tmp_path: Path) -> None:
    async with street(tmp_path) as there, terminal(tmp_path) as here:
        there.answer = JSONResponse({}, 503)
        here.types("say tea\r")
        await here.until(lambda screen: "\ntea" in screen)
        here.types("/handoff alpha\r")
        await here.shows("Ctrl-C cancels it")
        here.types(CTRL_C)
        await here.shows("was cancelled. The conversation is still here.")
        here.types("say milk\r")
        await here.until(lambda screen: "\nmilk" in screen)
        here.types("/quit\r")
        assert await here.leaves() == 0


async def test_through_a_pipe_it_waits_and_leaves(tmp_path: Path) -> None:
    async with street(tmp_path) as there:
        code, out, err = await piped(tmp_path, "say tea\n/handoff alpha\nsay never\n")
        assert (code, err) == (0, "")
        assert out.startswith("tea\nHanding an untitled session off to http.alpha")
        assert "This conversation goes on in http.alpha." in out
        assert "never" not in out
        assert [call["kind"] for call in there.calls] == ["open_thread", "message"]
        await somebody_speaks(there, "den")
        code, out, err = await piped(tmp_path, "say milk\n/handoff alpha:den\n/yes\nsay never\n")
        assert (code, err) == (0, "")
        assert "1 other person has spoken there so far. Type /yes" in out
        assert "This conversation goes on in http.alpha." in out
        assert "never" not in out


async def test_one_message_shows_the_way_too(tmp_path: Path) -> None:
    async with street(tmp_path):
        assert (await segue(tmp_path, "chat", "-m", "say tea"))[0] == 0
        code, out, err = await segue(tmp_path, "chat", "-m", "/handoff")
        assert (code, err) == (0, "")
        assert "1. http.alpha: everyone in lobby can read there" in out
        assert "Or send /link " in out


@pytest.mark.parametrize("option", ["--allow-readers", "--yes"])
async def test_a_script_moves_a_session_and_its_exit_code_says_how_it_went(tmp_path: Path, option: str) -> None:
    async with street(tmp_path) as there:
        assert (await piped(tmp_path, "say tea\n/title Tea\n"))[0] == 0
        code, _, err = await segue(tmp_path, "handoff", "Coffee", "alpha")
        assert (code, "Coffee" in err) == (2, True)
        code, _, err = await segue(tmp_path, "handoff", "Tea", "telegram")
        assert (code, "isn't connected" in err) == (2, True)
        there.answer = JSONResponse({}, 400)
        code, _, err = await segue(tmp_path, "handoff", "Tea", "alpha")
        assert code == 1
        assert "stayed where it was" in err
        there.answer = JSONResponse({"id": "m1", "thread": "t2"})
        code, out, err = await segue(tmp_path, "handoff", "Tea", "alpha", "--json")
        assert (code, err) == (0, "")
        assert json.loads(out)["state"] == "done"
        assert json.loads(out)["to"] == "http.alpha"
        await somebody_speaks(there, "den")
        code, _, err = await segue(tmp_path, "handoff", "Tea", "alpha:den")
        assert (code, "Say so with --allow-readers if they may." in err) == (2, True)
        code, out, err = await segue(tmp_path, "handoff", "Tea", "alpha:den", option)
        assert (code, out) == (0, "The conversation goes on in http.alpha.\n")
        assert ("--yes is called --allow-readers now." in err) is (option == "--yes")
        code, _, err = await segue(tmp_path, "handoff", "Tea", "terminal")
        assert code == 2
        assert "nobody looks at a terminal now" in err


async def test_without_a_gateway_it_says_how_to_start_one(tmp_path: Path) -> None:
    (tmp_path / "segue.toml").touch()
    assert (await piped(tmp_path, "say tea\n/title Tea\n"))[0] == 0
    code, _, err = await segue(tmp_path, "handoff", "Tea", "alpha")
    assert (code, "segue serve" in err) == (1, True)
    told = (await piped(tmp_path, "/handoff telegram\n"))[1]
    assert told.startswith(
        "destination: 'telegram' isn't connected. No platform is connected here. `segue add` adds one"
    )


async def test_a_terminal_that_is_its_own_gateway_connects_no_platform(tmp_path: Path) -> None:
    """It would leave with whoever hands off, and nobody would answer in the new place."""
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    (tmp_path / "segue.toml").write_text(SETTINGS.format(secret=secret, callback="http://127.0.0.1:9/"))
    assert "'alpha' isn't connected" in (await piped(tmp_path, "say tea\n/handoff alpha\n"))[1]
