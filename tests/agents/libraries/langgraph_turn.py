"""The example of LangGraph in docs/agents.md, with a model that adds up by a tool; prints what it came to."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec
from langchain_core.messages import AIMessage
from langgraph.prebuilt import ToolNode

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
EXAMPLE = compile(Path(sys.argv[1]).read_text(), sys.argv[1], "exec")
sent: list[Any] = []
added: list[int] = []


class Adds:
    """A model that uses its tool once, and then tells what that came to."""

    async def ainvoke(self, messages: list[Any]) -> AIMessage:
        sent.append([{"type": m.type, "text": m.content} for m in messages])
        done = next((m for m in messages if m.type == "tool" and m.tool_call_id == "call"), None)
        if done is None:
            return AIMessage("", tool_calls=[{"name": "add", "args": SUM.arguments, "id": "call"}])
        return AIMessage(f"It is {done.content}.")


def add(one: int, two: int) -> int:
    """Add."""
    added.append(one + two)
    return one + two


async def turn(reply: Any, journal: tuple[Any, ...] = ()) -> list[Event]:
    work = Work(SessionId("s"), 2, "", BEFORE, (Draft(ANN, (Text("1 + 2?"),)),), journal)
    return [event async for event in FunctionAgent(reply).answer(work)]


async def main() -> None:
    names: dict[str, Any] = {"model": Adds(), "tools": ToolNode([add])}
    exec(EXAMPLE, names)
    whole = await turn(names["reply"])
    first, asked = sent[0], len(sent)
    # A kill after the tool was used: nothing is added again.
    again = await turn(names["reply"], (SUM, ToolResult("call", "3")))
    told = {"whole": whole, "again": again, "sent": first, "asked": asked, "asked_again": len(sent) - asked}
    sys.stdout.write(msgspec.json.encode({**told, "added": added}).decode())


asyncio.run(main())
