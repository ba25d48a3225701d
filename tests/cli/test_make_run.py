"""`make run`: what somebody sees who tries Segue for the first time."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cli.screens import terminal
from tests.clients import http_client
from tests.served import PATIENCE

ROOT = Path(__file__).parent.parent.parent


@asynccontextmanager
async def running(home: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "segue", "talk", "--page"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"SEGUE_HOME": str(home)},
        cwd=home.parent,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


def test_it_is_what_make_runs_with_its_home_inside_the_clone() -> None:
    hidden = {"SEGUE_HOME", "MAKEFLAGS", "MAKELEVEL"}
    environ = {name: value for name, value in os.environ.items() if name not in hidden}
    told = subprocess.run(
        ["make", "--no-print-directory", "-n", "-o", ".venv/installed", "run"],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == 'SEGUE_HOME="${SEGUE_HOME:-.segue}" .venv/bin/python -m segue talk --page\n'
    assert "/.segue/" in (ROOT / ".gitignore").read_text().splitlines()


async def test_without_a_terminal_it_shows_an_exchange_and_serves_the_page_until_stopped(tmp_path: Path) -> None:
    async with running(tmp_path / "home") as here:
        assert here.stdout is not None
        told = ""
        async with asyncio.timeout(PATIENCE):
            while "Serving until stopped." not in told:
                line = (await here.stdout.readline()).decode()
                assert line, (told, await here.communicate())
                told += line
        asked, answer, *_ = told.splitlines()
        assert asked.startswith("You: Hello!")
        assert "built-in agent" in answer
        link = re.findall(r"http://127\.0\.0\.1:\d+/signin\?code=\S+", told)
        assert len(link) == 1
        async with http_client(follow_redirects=True) as browser:
            assert (await browser.get(link[0])).status_code == 200
        here.send_signal(signal.SIGTERM)
        _, errors = await here.communicate()
        assert (here.returncode, errors) == (0, b"")


async def test_a_second_one_takes_another_port_and_tells_its_own_address(tmp_path: Path) -> None:
    ports = []
    async with running(tmp_path / "one") as one, running(tmp_path / "two") as two:
        for here in (one, two):
            assert here.stdout is not None
            async with asyncio.timeout(PATIENCE):
                while not (found := re.search(rb"http://127\.0\.0\.1:(\d+)/signin", await here.stdout.readline())):
                    """Not this line."""
            ports.append(found[1])
    assert len(set(ports)) == 2


async def test_in_a_terminal_it_is_the_chat_with_the_pages_address(tmp_path: Path) -> None:
    async with terminal(tmp_path, "talk", "--page") as here:
        await here.until(lambda screen: "/signin?code=" in screen.replace("\n", ""))
        here.types("add 2 and 3\r")
        await here.shows("2 and 3 make 5.")
        here.types("/quit\r")
        assert await here.leaves() == 0
