"""aimock, a server that speaks like OpenAI's, Anthropic's and other providers' APIs, with its chaos and its journal."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from segue.agents.models.keys import ModelKeys
from segue.core.values import Secret
from tests.clients import http_client
from tests.servers import providers

Fixture = dict[str, Any]
MODELS = {
    "chat": ("openai-chat:gpt-4o", "/v1"),
    "responses": ("openai-responses:gpt-5", "/v1"),
    "anthropic": ("anthropic:claude-sonnet-4-6", ""),
    "google": ("google:gemini-2.5-flash", "/v1beta"),
    "ollama": ("ollama:llama3.2", "/v1"),
}
"""A model for each API that it speaks, and where that is."""


def says(content: str, to: str = "", **more: Any) -> Fixture:
    """What it answers, to words that contain a text."""
    match, response = more.pop("match", {}), more.pop("response", {})
    asked = {"userMessage": to} if to else {}
    return {"match": {**asked, **match}, "response": {"content": content, **response}, **more}


def calls(name: str, arguments: object, to: str, **more: Any) -> Fixture:
    """A tool that it calls, as long as this turn has no result."""
    call = {"name": name, "arguments": json.dumps(arguments), "id": f"call_{name}"}
    match = {"userMessage": to, "hasToolResult": False, **more.pop("match", {})}
    return {"match": match, "response": {"toolCalls": [call], **more}}


class Aimock:
    """A server that runs."""

    def __init__(self, url: str, client: httpx2.AsyncClient) -> None:
        self.url = url
        self._client = client

    def keys(self, kind: str, **more: Any) -> ModelKeys:
        """What a host writes to use it as one of the providers."""
        model, path = MODELS[kind]
        plain: dict[str, Any] = {"model": model, "base_url": self.url + path, "api_key": Secret("key")}
        return ModelKeys(**(plain | more))

    async def chaos(self, **rates: float) -> None:
        """Make trouble by rates from 0 to 1: dropRate, malformedRate, disconnectRate, rateLimitRate; and latencyMs."""
        done = await self._client.post(f"{self.url}/__aimock/chaos", json=rates)
        assert done.status_code == 200, done.text

    async def calm(self) -> None:
        """Make no more trouble."""
        await self._client.delete(f"{self.url}/__aimock/chaos")

    async def journal(self) -> list[dict[str, Any]]:
        """All requests that came to a model, the oldest first."""
        entries: list[dict[str, Any]] = (await self._client.get(f"{self.url}/__aimock/journal")).json()
        return [entry for entry in entries if not entry["path"].startswith("/__aimock")]


@asynccontextmanager
async def aimock(folder: Path, fixtures: Sequence[Fixture]) -> AsyncIterator[Aimock]:
    """A server that answers by fixtures, until the block ends; skips the test where it isn't installed."""
    (folder / "fixtures").mkdir()
    (folder / "fixtures" / "all.json").write_text(json.dumps({"fixtures": list(fixtures)}))
    settings = {"fixtures": str(folder / "fixtures"), "logLevel": "silent", "chunkSize": 8}
    server = await providers.start("aimock", host="127.0.0.1", port=0, llm=settings)
    try:
        async with http_client() as client:
            yield Aimock(server.url, client)
    finally:
        await providers.stop(server)
