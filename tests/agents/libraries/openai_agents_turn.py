"""The example of openai-agents in docs/agents.md, with a model that adds up by a tool; prints what it came to."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec
from agents import Agent, ModelResponse, Usage, function_tool, set_tracing_disabled
from agents.memory import Session
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from segue.agents.functions import FunctionAgent
from segue.agents.libraries.openai_agents import WorkSession
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


class Adds(Model):  # type: ignore[misc]  # the library is in an environment of its own
    """A model that uses its tool once, and then tells what that came to."""

    async def get_response(self, *_args: Any, **more: Any) -> Any:
        given = more["input"]
        sent.append(given)
        done = next((item for item in given if item.get("call_id") == "call" and "output" in item), None)
        call = ResponseFunctionToolCall(
            type="function_call", call_id="call", name="add", arguments=msgspec.json.encode(SUM.arguments).decode()
        )
        text = ResponseOutputText(type="output_text", text=f"It is {done and done['output']}.", annotations=[])
        told = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
        return ModelResponse(output=[told if done else call], usage=Usage(), response_id=None)

    def stream_response(self, *_args: Any, **_more: Any) -> Any:
        raise NotImplementedError


@function_tool  # type: ignore[untyped-decorator]  # the same
def add(one: int, two: int) -> int:
    """Add."""
    added.append(one + two)
    return one + two


async def turn(reply: Any, journal: tuple[Any, ...] = ()) -> list[Event]:
    work = Work(SessionId("s"), 2, "", BEFORE, (Draft(ANN, (Text("1 + 2?"),)),), journal)
    return [event async for event in FunctionAgent(reply).answer(work)]


async def main() -> None:
    set_tracing_disabled(True)
    names: dict[str, Any] = {}
    exec(EXAMPLE, names)
    names["bot"] = Agent(name="Bot", instructions="Be brief.", tools=[add], model=Adds())
    work = Work(SessionId("s"), 2, "", BEFORE, ())
    assert isinstance(WorkSession(work), Session)
    whole = await turn(names["reply"])
    first, asked = sent[0], len(sent)
    # A kill after the tool was used: nothing is added again.
    again = await turn(names["reply"], (SUM, ToolResult("call", "3")))
    told = {"whole": whole, "again": again, "sent": first, "asked": asked, "asked_again": len(sent) - asked}
    sys.stdout.write(msgspec.json.encode({**told, "added": added}).decode())


asyncio.run(main())
