"""The example of openai-agents in docs/agents.md, with a model that adds up by a tool; prints what it came to."""

import asyncio
from typing import Any

import msgspec
from agents import Agent, ModelResponse, Usage, function_tool, set_tracing_disabled
from agents.memory import Session
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from segue.agents.libraries.openai_agents import WorkSession
from segue.core.contracts.agents import Work
from segue.core.values import SessionId
from tests.agents.libraries.turns import BEFORE, SUM, add, example, sent, tell


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


async def main() -> None:
    set_tracing_disabled(True)
    names: dict[str, Any] = {}
    exec(example(), names)
    names["bot"] = Agent(name="Bot", instructions="Be brief.", tools=[function_tool(add)], model=Adds())
    assert isinstance(WorkSession(Work(SessionId("s"), 2, "", BEFORE, ())), Session)
    await tell(names["reply"])


asyncio.run(main())
