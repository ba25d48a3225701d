"""Makes a model agent from the host's settings."""

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import cast

import httpx2
from pydantic_ai import Agent
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings, ThinkingLevel

from segue.agents.models.agent import PydanticAgent
from segue.agents.models.keys import ModelKeys, Notebook, Thinking

_ROOMS = {
    "anthropic": "anthropic",
    "google": "google",
    "ollama": "openai",
    "openai": "openai",
    "openai-chat": "openai",
    "openai-responses": "openai",
}
"""The module for each provider."""
_NO_KEY = "none"
"""A placeholder key: private servers need none, but the libraries require one."""
_EFFORT: dict[Thinking, ThinkingLevel] = {
    Thinking.OFF: False,
    Thinking.MINIMAL: "minimal",
    Thinking.LOW: "low",
    Thinking.MEDIUM: "medium",
    Thinking.HIGH: "high",
}
_TIMEOUT = httpx2.Timeout(600.0, connect=10.0)


class ModelAgent(PydanticAgent):
    """An agent with a model and its HTTP connections."""

    def __init__(
        self, keys: ModelKeys, client: httpx2.AsyncClient, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        agent = Agent(
            model_of(keys, client),
            instructions=keys.told() or None,
            model_settings=_settings(keys),
            name="segue",
        )
        notes = keys.notes is Notebook.ON
        super().__init__(agent, retries=keys.retries, window=keys.window, prices=keys.prices, notes=notes, sleep=sleep)
        self._client = client
        self.gateway_tools = keys.tools

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def model_agent(keys: ModelKeys) -> ModelAgent:
    """Return the agent in the host's settings."""
    return ModelAgent(keys, httpx2.AsyncClient(timeout=_TIMEOUT))


def model_of(keys: ModelKeys, client: httpx2.AsyncClient) -> Model:
    """Return the model. Only its provider's library is imported: each import takes seconds."""
    key = keys.api_key.reveal() if keys.api_key else _NO_KEY
    provider = import_module(f"segue.agents.models.{_ROOMS[keys.provider]}")
    return cast("Model", provider.make(keys, key, client))


def _settings(keys: ModelKeys) -> ModelSettings:
    # Only `PydanticAgent` retries, because it knows what was sent. The libraries don't retry.
    settings = ModelSettings(cache=True, max_retries=0)
    if keys.max_tokens is not None:
        settings["max_tokens"] = keys.max_tokens
    if keys.thinking is not None:
        settings["thinking"] = _EFFORT[keys.thinking]
    return settings
