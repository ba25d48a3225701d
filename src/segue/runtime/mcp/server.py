"""The MCP server itself, over HTTP or over standard input and output."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from segue import __version__
from segue.core.contracts.agents import Tool, Tools
from segue.core.messages import ToolCall
from segue.runtime.mcp.door import TOOLS

INSTRUCTIONS = (
    "The conversations that your person has with an AI agent on every platform, by Segue: read and search them, say "
    "something in them, begin new ones, move one to a chat, have work done later, ask your person something where they "
    "are. A call that changes something takes a key: the same call with the same key is done once."
)
READS = frozenset({"sessions_list", "sessions_history", "sessions_search", "schedules_list", "notes_read"})

Call = Callable[[ServerRequestContext[Any], str, dict[str, Any]], Awaitable[types.CallToolResult]]
List = Callable[[ServerRequestContext[Any]], Awaitable[list[types.Tool]]]


def server(listed: List, call: Call) -> "Server[Any]":
    """An MCP server of these tools, whatever it is reached by."""

    async def on_list(context: ServerRequestContext[Any], _: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=await listed(context), ttl_ms=0, cache_scope="private")

    async def on_call(context: ServerRequestContext[Any], params: types.CallToolRequestParams) -> types.CallToolResult:
        return await call(context, params.name, params.arguments or {})

    return Server(
        "segue",
        version=__version__,
        title="Segue",
        instructions=INSTRUCTIONS,
        on_list_tools=on_list,
        on_call_tool=on_call,
    )


def manager() -> StreamableHTTPSessionManager:
    """The same over HTTP: the tools of whoever calls are in the request's scope, under `TOOLS`."""
    return StreamableHTTPSessionManager(server(_listed, _called), json_response=True, stateless=True)


def failure(words: str) -> types.CallToolResult:
    """A call that couldn't be done, and why."""
    return types.CallToolResult(content=[types.TextContent(text=words)], is_error=True)


def _given(context: ServerRequestContext[Any]) -> Tools:
    request: Any = context.request
    tools: Tools = request.scope[TOOLS]
    return tools


async def _listed(context: ServerRequestContext[Any]) -> list[types.Tool]:
    return [_described(tool) for tool in _given(context).offered]


async def _called(context: ServerRequestContext[Any], name: str, arguments: dict[str, Any]) -> types.CallToolResult:
    done = await _given(context).call(ToolCall(f"mcp/{uuid4().hex}", name, arguments))
    if done.failed:
        return failure(str(done.content))
    content = msgspec.to_builtins(done.content)
    text = msgspec.json.format(msgspec.json.encode(content), indent=2).decode()
    return types.CallToolResult(
        content=[types.TextContent(text=text)],
        structured_content=content if isinstance(content, dict) else None,
    )


def _described(tool: Tool) -> types.Tool:
    reads = tool.name in READS
    hints = types.ToolAnnotations(
        read_only_hint=reads, idempotent_hint=True, destructive_hint=False, open_world_hint=False
    )
    return types.Tool(
        name=tool.name, description=tool.does, input_schema=msgspec.to_builtins(tool.parameters), annotations=hints
    )
