"""The pictures of docs/why.md are drawn from the code: the rooms by the import rule, the walk by a traced message."""

import asyncio
import re
import sys
import threading
import time
import tomllib
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import segue
from segue.testing import Telegram
from tests.in_process import gateway_on

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "why.md"
HERE = str(Path(segue.__file__).parent)
SAYS = {
    "cli": "commands and the terminal",
    "testing": "fakes and contract suites for authors",
    "config": "segue.toml as settings",
    "plugins": "adapters and agents of other packages",
    "runtime": "what awaits: inbox, turns, outbox, windows, server",
    "imports": "histories from elsewhere",
    "store": "the public Python API",
    "changes": "what yields: one short transaction each",
    "adapters": "one platform each",
    "agents": "what answers",
    "database": "SQLite and PostgreSQL, which run the changes",
    "core": "what computes: values, moves, text, contracts",
    "errors": "what can go wrong, in words",
}


def block(name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n```text\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found, f"docs/why.md has no picture of the {name}"
    return found[1]


def rooms() -> str:
    """The rooms from top to bottom; those in one frame are beside each other."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(rule["layers"] for rule in rules if rule["type"] == "layers")
    line = "+" + "-" * 66 + "+\n"
    drawn = line
    for layer in layers:
        for room in layer.split(" | "):
            drawn += f"| {room:<10} {SAYS[room]:<53} |\n"
        drawn += line
    return drawn


def test_the_rooms_are_those_of_the_import_rule() -> None:
    assert block("rooms") == rooms(), "Draw it anew: python -m tests.docs.test_why"


async def test_a_message_walks_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = re.findall(r"^ *([a-z_/]+\.py) +(?:([A-Za-z_.]+): )?", block("walk"), re.MULTILINE)
    missed = await walked(tmp_path, wanted)
    assert not missed, f"a message never came to {' '.join(missed[0])} after the steps before it"


def left(wanted: list[tuple[str, str]], trail: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The steps that a trail doesn't come to in this order."""
    step = 0
    for file, name in trail:
        if step < len(wanted) and file == wanted[step][0] and wanted[step][1] in ("", name):
            step += 1
    return wanted[step:]


async def walked(folder: Path, wanted: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The steps to which one warm message doesn't come in order, though there is time."""
    trail: list[tuple[str, str]] = []

    def see(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(HERE):
            trail.append((code.co_filename[len(HERE) + 1 :], code.co_qualname))

    platform = Telegram()
    ann = platform.person("Ann")
    chat = platform.dm(ann)

    async def reply(text: str) -> str:
        return f"heard {text}"

    before = sys.getprofile()
    threading.setprofile(see)
    try:
        async with gateway_on(folder, reply, platform, poll=1.0) as gateway:
            ann.says("warm", chat)
            warm = await chat.reads("heard warm")
            while await gateway.store.receipt(chat.address, warm.id) is None:  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.01)
            sys.setprofile(see)
            trail.clear()
            ann.says("one", chat)
            await chat.reads("heard one")
            until = time.monotonic() + 60
            while left(wanted, trail[:]) and time.monotonic() < until:  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.05)
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return left(wanted, trail)


if __name__ == "__main__":
    text = PAGE.read_text("utf-8")
    PAGE.write_text(
        text.replace(f"<!-- rooms -->\n```text\n{block('rooms')}```", f"<!-- rooms -->\n```text\n{rooms()}```")
    )
