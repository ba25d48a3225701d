"""MCP over standard input and output: what a program asks for is asked of the gateway, and its answer given back."""

from collections.abc import Callable
from typing import Any

import httpx2
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from segue.runtime.mcp.server import failure, server

_HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
_LONGEST = 330.0
"""Seconds for which an answer is waited for: longer than the longest wait of a tool."""
_NOBODY = "No gateway answers there. Start one with `segue serve`."


class Unheard(Exception):
    """A call that the gateway didn't take, in its own words."""


async def bridge(url: str, headers: dict[str, str], transport: Callable[[], httpx2.AsyncHTTPTransport | None]) -> None:
    """Serve until the input ends. Each call is one of its own, so a gateway may be started anew between two."""

    async def ask(method: str, params: dict[str, Any]) -> Any:
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        try:
            async with httpx2.AsyncClient(transport=transport(), timeout=_LONGEST, trust_env=False) as client:
                answer = await client.post(url, json=call, headers=_HEADERS | headers)
            told = answer.json()
        except (httpx2.TransportError, ValueError) as error:
            raise Unheard(_NOBODY) from error
        if "result" not in told:
            wrong = told.get("error", _NOBODY)
            raise Unheard(wrong.get("message", _NOBODY) if isinstance(wrong, dict) else wrong)
        return told["result"]

    async def listed(_: Any) -> list[types.Tool]:
        try:
            return types.ListToolsResult.model_validate(await ask("tools/list", {})).tools
        except Unheard as unheard:
            raise MCPError(types.INTERNAL_ERROR, str(unheard)) from unheard

    async def called(_: Any, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        try:
            return types.CallToolResult.model_validate(await ask("tools/call", {"name": name, "arguments": arguments}))
        except Unheard as unheard:
            return failure(str(unheard))

    serving = server(listed, called)
    async with stdio_server() as (read, write):
        await serving.run(read, write, serving.create_initialization_options())
