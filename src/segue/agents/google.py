"""Models of Google's."""

from __future__ import annotations

import httpx2
from pydantic_ai.models import Model
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.google import GoogleProvider

from segue.agents.models import ModelKeys


def make(keys: ModelKeys, key: str, client: httpx2.AsyncClient) -> Model:
    """The model that a host's keys name."""
    provider = GoogleProvider(api_key=key, base_url=keys.base_url or None, http_client=client)
    return GoogleModel(keys.name, provider=provider)
