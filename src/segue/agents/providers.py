"""Models of the providers: from the host's keys to an agent that answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import httpx2
from pydantic_ai import Agent
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings, ThinkingLevel

from segue.agents.models import ModelKeys, Thinking
from segue.agents.pydantic import PydanticAgent

_OLLAMA = "http://127.0.0.1:11434/v1"
_NO_KEY = "none"
"""Servers of one's own want no key, but the libraries do."""
_EFFORT: dict[Thinking, ThinkingLevel] = {
    Thinking.OFF: False,
    Thinking.MINIMAL: "minimal",
    Thinking.LOW: "low",
    Thinking.MEDIUM: "medium",
    Thinking.HIGH: "high",
}
_TIMEOUT = httpx2.Timeout(600.0, connect=10.0)


class ModelAgent(PydanticAgent):
    """Answers by a model; holds the connections to its provider."""

    def __init__(
        self, keys: ModelKeys, client: httpx2.AsyncClient, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        agent = Agent(
            model_of(keys, client),
            instructions=keys.told() or None,
            model_settings=_settings(keys),
            name="segue",
        )
        super().__init__(agent, retries=keys.retries, window=keys.window, prices=keys.prices, sleep=sleep)
        self._client = client

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()


def model_agent(keys: ModelKeys) -> ModelAgent:
    """The agent that a host's keys describe."""
    return ModelAgent(keys, httpx2.AsyncClient(timeout=_TIMEOUT))


def model_of(keys: ModelKeys, client: httpx2.AsyncClient) -> Model:
    """The model itself."""
    key = keys.api_key.reveal() if keys.api_key else _NO_KEY
    url = keys.base_url or None
    if keys.provider == "anthropic":
        return AnthropicModel(keys.name, provider=AnthropicProvider(api_key=key, base_url=url, http_client=client))
    if keys.provider == "google":
        return GoogleModel(keys.name, provider=GoogleProvider(api_key=key, base_url=url, http_client=client))
    if keys.provider == "ollama":
        there = OllamaProvider(base_url=url or _OLLAMA, api_key=key, http_client=client)
        return OllamaModel(keys.name, provider=there)
    openai = OpenAIProvider(base_url=url, api_key=key, http_client=client)
    # Other servers that speak like OpenAI's know its older API; OpenAI's own keeps thoughts with the newer.
    if keys.provider == "openai-chat" or (keys.provider == "openai" and url):
        return OpenAIChatModel(keys.name, provider=openai)
    return OpenAIResponsesModel(keys.name, provider=openai)


def _settings(keys: ModelKeys) -> ModelSettings:
    # One place tries again, and knows what was told by then: not the providers' libraries too.
    settings = ModelSettings(cache=True, max_retries=0)
    if keys.max_tokens is not None:
        settings["max_tokens"] = keys.max_tokens
    if keys.thinking is not None:
        settings["thinking"] = _EFFORT[keys.thinking]
    return settings
