"""Rights drills: permissions for calls that look alike, and children of people whose account limits them.

A person who allowed one call of an ACP agent has allowed no other, however much the two have in common. Children are
answered by the agent, and with the tools, of the account in which their first ancestor was asked for.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from acp import schema as s

from segue.agents.acp.turn import AcpTurn
from segue.core.contracts.agents import Event, Work
from segue.core.messages import Text, ToolCall
from segue.core.questions import YES
from segue.core.settings import AccountSettings, Streams
from segue.testing import Telegram, To
from segue.testing.agents import said
from segue.testing.waits import PATIENCE
from tests.drills.planting import Bug, planted
from tests.in_process import gateway_on

_OPTIONS = [s.PermissionOption(option_id="y", name="Allow", kind="allow_once")]
_TOOLS = ("sessions_spawn",)
_DEEPEST = 3


def call(dice: random.Random) -> dict[str, Any]:
    """A call of a tool that begins like most others do."""
    beginning = "pytest " + "tests/unit " * dice.choice((1, 30, 300))
    ends = ("-q", "-q ; evil", "-q\n; evil", "-q  ; evil", "")
    given = {"command": beginning + dice.choice(ends)} if dice.random() < 0.8 else {"to": dice.choice("ab")}
    return {
        "title": dice.choice(("Run tests", "Run tests ", beginning)),
        "kind": dice.choice(("execute", "delete")),
        "raw_input": given,
        "locations": [s.ToolCallLocation(path=dice.choice(("/a", "/b")))],
    }


async def approvals(seed: int, count: int, bug: Bug = Bug.NONE) -> list[str]:
    """Ask for permission to make so many calls; returns those that were allowed along with another one."""
    dice, known, found = random.Random(seed), dict[str, str](), list[str]()
    asked: list[str] = []

    async def ask(_words: str, _choices: Any, *, key: str, allows: str) -> str:
        asked[:] = key, allows
        return YES

    context: Any = SimpleNamespace(ask=ask, files=None, context="")
    with planted(*bug.patches):
        for made in (call(dice) for _ in range(count)):
            await AcpTurn(context, "model", 0.0).permit(s.ToolCallUpdate(tool_call_id="c", **made), _OPTIONS, "")
            for key in asked:
                if known.setdefault(key, repr(made)) != repr(made):
                    found.append(f"seed {seed}: {made} was allowed with {known[key]}")
    return found


class Worker:
    """An agent that has each child start another one, as it is told to: `go run go session task`."""

    def __init__(self, name: str, log: list[tuple[str, Work]]) -> None:
        self._name = name
        self._log = log
        self.reached = asyncio.Event()
        """Set once a child was asked that starts no other."""

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        """Start the next child."""
        self._log.append((self._name, work))
        go, _, rest = said(work).partition(" ")
        if go == "go":
            mode, _, task = rest.partition(" ")
            arguments = {"task": task, "mode": mode, "label": f"{len(self._log)}"}
            result = await work.tools.call(ToolCall(task, "sessions_spawn", arguments))
            yield Text(f"failed: {result.content}" if result.failed else "started")
            return
        if go == "task":
            self.reached.set()
        yield Text("done")


async def inheritance(where: str | Path, seed: int, count: int, bug: Bug = Bug.NONE) -> list[str]:
    """Let so many strangers have children of children; returns the turns that had more than their account allows."""
    dice, telegram = random.Random(seed), Telegram()
    log: list[tuple[str, Work]] = []
    strong, weak = Worker("strong", log), Worker("weak", log)
    account = AccountSettings(public=True, streams=Streams.WHOLE, agent="weak", tools=_TOOLS)
    found: list[str] = []
    with planted(*bug.patches):
        async with gateway_on(where, {"strong": strong, "weak": weak}, telegram, account=account):
            for number in range(count):
                modes = [dice.choice(("run", "session")) for _ in range(dice.randint(1, _DEEPEST))]
                words = "".join(f"go {mode} " for mode in modes) + f"task {number}"
                person = telegram.person(f"Bob{number}")
                person.says(words, telegram.dm(person), None, To.AGENT)
                ends = [asyncio.ensure_future(worker.reached.wait()) for worker in (strong, weak)]
                await asyncio.wait(ends, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
                for end in ends:
                    end.cancel()
                for agent, work in log:
                    tools = {tool.name for tool in work.tools.offered}
                    if agent != "weak" or not tools <= {*_TOOLS}:
                        found.append(f"seed {seed}: after {words!r}, {agent} was asked {said(work)!r} with {tools}")
                if not weak.reached.is_set():
                    found.append(f"seed {seed}: {words!r} was never done")
                log.clear()
                weak.reached.clear()
    return found
