"""The example of LangGraph in docs/agents.md, with a model that adds up by a tool; prints what it came to."""

import asyncio
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.prebuilt import ToolNode

from tests.agents.libraries.turns import SUM, add, example, sent, tell


class Adds:
    """A model that uses its tool once, and then tells what that came to."""

    async def ainvoke(self, messages: list[Any]) -> AIMessage:
        sent.append([{"type": m.type, "text": m.content} for m in messages])
        done = next((m for m in messages if m.type == "tool" and m.tool_call_id == "call"), None)
        if done is None:
            return AIMessage("", tool_calls=[{"name": "add", "args": SUM.arguments, "id": "call"}])
        return AIMessage(f"It is {done.content}.")


async def main() -> None:
    names: dict[str, Any] = {"model": Adds(), "tools": ToolNode([add])}
    exec(example(), names)
    await tell(names["reply"])


asyncio.run(main())
