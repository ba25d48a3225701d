"""Anthropic's models."""

import httpx2
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from segue.agents.models.keys import ModelKeys


def make(keys: ModelKeys, key: str, client: httpx2.AsyncClient) -> Model:
    """Return the model in the host's settings."""
    provider = AnthropicProvider(api_key=key, base_url=keys.base_url or None, http_client=client)
    return AnthropicModel(keys.name, provider=provider)
