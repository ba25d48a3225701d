import asyncio
import json
import re
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

import segue
from tests.adapters.platform import Platform, platform, signed
from tests.clients import http_client
from tests.forge import Piped, piped

SECRET = "s3cret-of-alpha"


class Segue:
    """A `segue` that runs in a process of its own."""

    def __init__(self, process: Piped) -> None:
        self.process = process
        self.url = ""

    async def line(self) -> str:
        return (await self.process.stdout.readline()).decode()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    async def end(self) -> tuple[int, str, str]:
        return await self.process.end()

    async def say(self, id: str, text: str, chat: str = "c1") -> httpx2.Response:
        message = {"id": id, "chat": chat, "chat_kind": "dm", "person": {"id": "u1", "name": "Ada"}, "text": text}
        body = json.dumps(message).encode()
        async with http_client() as client:
            headers = signed(SECRET, body, time.time())
            return await client.post(f"{self.url}/in/http/alpha", content=body, headers=headers)


@asynccontextmanager
async def run(home: Path, *arguments: str) -> AsyncIterator[Segue]:
    async with piped(*arguments, home=home, ALPHA_SECRET=SECRET) as process:
        yield Segue(process)


@asynccontextmanager
async def serve(home: Path, *agent: str) -> AsyncIterator[Segue]:
    async with run(home, "serve", *agent, "--port", "0") as here:
        found = re.fullmatch(r"Segue listens on (http://127\.0\.0\.1:\d+)\n", await here.line())
        assert found is not None, await here.end()
        here.url = found[1]
        yield here


def write(home: Path, there: Platform, more: str = "") -> None:
    account = f'secret = "env:ALPHA_SECRET"\ncallback = "{there.url}"\npublic = true'
    (home / "segue.toml").write_text(f"[http.alpha]\n{account}\n{more}")


async def heard(there: Platform, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(60):
        while len(there.bodies) < count:
            await there.called.wait()
            there.called.clear()
    return there.calls


async def test_a_message_is_answered_and_a_signal_stops_it(tmp_path: Path) -> None:
    async with platform() as there:
        write(tmp_path, there)
        async with serve(tmp_path) as here:
            assert (await here.say("m1", "say good morning")).status_code == 202
            assert (await here.say("m1", "say good morning")).json() == {"accepted": False, "duplicate": True}
            [call] = await heard(there, 1)
            assert call["text"] == "good morning"
            assert call["in_reply_to"] == "m1"
            async with http_client() as client:
                assert (await client.get(f"{here.url}/healthz")).status_code == 200
                assert (await client.get(f"{here.url}/readyz")).status_code == 200
                metrics = (
                    await client.get(
                        f"{here.url}/metrics", headers={"Authorization": f"Bearer {(tmp_path / 'token').read_text()}"}
                    )
                ).text
            here.signal(signal.SIGTERM)
            code, _, logged = await here.end()
    assert 'segue_arrivals_total{account="alpha",outcome="new",platform="http"} 1.0' in metrics
    assert code == 0
    assert "good morning" not in logged
    assert SECRET not in logged
    assert all(isinstance(json.loads(line), dict) for line in logged.splitlines())
    assert (tmp_path / "segue.db").exists()


async def test_what_was_said_before_a_restart_is_remembered_after_it(tmp_path: Path) -> None:
    async with platform() as there:
        write(tmp_path, there)
        for count, text in enumerate(["remember the tea is in the blue tin", "what do you remember?"], 1):
            async with serve(tmp_path) as here:
                await here.say(f"m{count}", text)
                await heard(there, count)
                here.signal(signal.SIGINT)
                assert (await here.end())[0] == 0
    assert "blue tin" in there.calls[1]["text"]


@pytest.mark.parametrize("name", ["bot:gateway", "bot:reply"])
async def test_an_agent_of_ones_own_answers_by_its_name(tmp_path: Path, name: str) -> None:
    code = "from segue import Gateway\n\nasync def reply(text: str) -> str:\n    return f'you said {text}'\n"
    (tmp_path / "bot.py").write_text(f"{code}\ngateway = Gateway(agent=reply)\n")
    async with platform() as there:
        write(tmp_path, there)
        async with serve(tmp_path, name) as here:
            await here.say("m1", "tea")
            [call] = await heard(there, 1)
    assert call["text"] == "you said tea"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("bot", '"bot" names nothing in a module.'),
        ("nobody:reply", "there is no module nobody here."),
        ("bot:nothing", "bot has no nothing."),
        ("bot:number", "int can't answer."),
        ("bot:plain", "plain isn't async."),
    ],
)
async def test_an_agent_that_is_not_there_is_one_line(tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / "bot.py").write_text("number = 1\n\ndef plain(text: str) -> str:\n    return text\n")
    async with run(tmp_path, "serve", name) as here:
        code, _, said = await here.end()
    assert (code, len(said.splitlines())) == (2, 1)
    assert said.startswith(f"Error: agent: {told}")


async def test_a_second_signal_stops_it_at_once(tmp_path: Path) -> None:
    async with platform() as there:
        write(tmp_path, there, "[replica]\ngrace = 600")
        async with serve(tmp_path) as here:
            await here.say("m1", "count to 1000 slowly")
            here.signal(signal.SIGTERM)
            while b"a second signal" not in await here.process.stderr.readline():
                """Wait until the first was heard."""
            here.signal(signal.SIGTERM)
            assert (await here.end())[0] == -signal.SIGTERM


async def test_a_mistake_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "segue.toml").write_text("[turns]\nslot = 1")
    async with run(tmp_path, "serve") as here:
        assert await here.end() == (2, "", "Error: turns.slot: there is no such key. Did you mean slots?\n")
    async with run(tmp_path, "serve", "--config", "nope.toml") as here:
        code, _, told = await here.end()
    assert code == 2
    assert told.startswith("Error: nope.toml: nope.toml doesn't exist.")


async def test_a_taken_port_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    async with platform() as there:
        write(tmp_path, there)
        port = httpx2.URL(there.url).port
        async with run(tmp_path, "serve", "--port", str(port)) as here:
            code, _, told = await here.end()
    assert (code, told.splitlines()) == (2, [told.strip()])
    assert f"port: {port} is taken." in told


async def test_a_database_that_cannot_be_opened_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "segue.toml").write_text('[store]\npath = "segue.toml"')
    async with run(tmp_path, "serve", "--port", "0") as here:
        code, _, told = await here.end()
    assert code == 1
    assert told.startswith("Error: ")
    assert len(told.splitlines()) == 1


async def test_the_version_is_told(tmp_path: Path) -> None:
    async with run(tmp_path, "--version") as here:
        assert await here.end() == (0, f"segue {segue.__version__}\n", "")


@pytest.mark.parametrize("arguments", [["nope"], ["serve", "--port", "70000"], ["serve", "--nope"]])
async def test_a_wrong_command_is_exit_code_2(tmp_path: Path, arguments: list[str]) -> None:
    async with run(tmp_path, *arguments) as here:
        assert (await here.end())[0] == 2
