"""Converts turns to LangGraph messages, and a run's messages to parts of the answer.

Law: the gateway keeps the transcript, so the graph needs no checkpointer: it gets all messages each time.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from segue.core.contracts.agents import Work
from segue.core.messages import Part, Text, ToolCall, ToolResult


class WorkMessages:
    """The messages of one turn for a graph.

    Use it as `state = await graph.ainvoke({"messages": turn.messages})`, then yield `turn.said(state)`.
    """

    def __init__(self, work: Work) -> None:
        self.messages: list[dict[str, Any]] = work.messages("openai")
        """The conversation so far, oldest first, as dicts that LangGraph accepts."""

    def said(self, state: dict[str, Any]) -> list[Part]:
        """Return the messages that a run added to its state, for the function to yield."""
        added: Sequence[Any] = state["messages"][len(self.messages) :]
        return [part for message in added for part in _parts(message)]


def _parts(message: Any) -> Iterator[Part]:
    """Convert a LangChain message. Messages of people and the system are no part of an answer."""
    if message.type == "tool":
        yield ToolResult(message.tool_call_id, message.content, failed=message.status == "error")
    if message.type != "ai":
        return
    pieces = [message.content] if isinstance(message.content, str) else message.content
    if text := "".join(piece if isinstance(piece, str) else piece.get("text", "") for piece in pieces):
        yield Text(text)
    for call in message.tool_calls:
        yield ToolCall(call["id"], call["name"], call["args"])
