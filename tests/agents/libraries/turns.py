"""What the examples of both libraries share: a conversation, a sum that a tool adds up, and a turn that asks for it."""

import sys
from pathlib import Path
from typing import Any

import msgspec

from segue.agents.functions import FunctionAgent
from segue.core.contracts.agents import Event, Work
from segue.core.messages import Reasoning, Text, ToolCall, ToolResult
from segue.core.transcripts import AGENT, Author, Draft, Role
from segue.core.values import SessionId

ANN = Author(Role.PERSON, "ann", "Ann")
SUM = ToolCall("call", "add", {"one": 1, "two": 2})
BEFORE: Any = (
    Draft(ANN, (Text("my cat is Tom"),)),
    Draft(AGENT, (Reasoning("anthropic", {"thinking": "a cat"}), ToolCall("c0", "look", {}), ToolResult("c0", ["x"]))),
)
sent: list[Any] = []
added: list[int] = []


def example() -> Any:
    """The example, whose file is named on the command line."""
    return compile(Path(sys.argv[1]).read_text(), sys.argv[1], "exec")


def add(one: int, two: int) -> int:
    """Add."""
    added.append(one + two)
    return one + two


async def tell(reply: Any) -> None:
    """Print what a turn came to, and the same after a kill once the tool was used: nothing is added again."""
    whole = await _turn(reply)
    first, asked = sent[0], len(sent)
    again = await _turn(reply, (SUM, ToolResult("call", "3")))
    told = {"whole": whole, "again": again, "sent": first, "asked": asked, "asked_again": len(sent) - asked}
    sys.stdout.write(msgspec.json.encode({**told, "added": added}).decode())


async def _turn(reply: Any, journal: tuple[Any, ...] = ()) -> list[Event]:
    work = Work(SessionId("s"), 2, "", BEFORE, (Draft(ANN, (Text("1 + 2?"),)),), journal)
    return [event async for event in FunctionAgent(reply).answer(work)]
