"""Google's models, at its own address or a compatible server."""

import re

import httpx2
from google.genai import Client
from google.genai.types import HttpOptions
from pydantic_ai.models import Model
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.google import GoogleProvider

from segue.agents.models.keys import ModelKeys

_VERSION = re.compile(r"/(v\d\w*)/?$")
"""The API version in an address. Without it, the library appends its own."""


def make(keys: ModelKeys, key: str, client: httpx2.AsyncClient) -> Model:
    """Return the model in the host's settings."""
    named = _VERSION.search(keys.base_url)
    options = HttpOptions(
        base_url=_VERSION.sub("", keys.base_url) or None,
        api_version=named[1] if named else None,
        httpx_async_client=client,
        timeout=int((client.timeout.read or 0) * 1000) or None,
    )
    there = Client(vertexai=False, api_key=key, http_options=options)
    return GoogleModel(keys.name, provider=GoogleProvider(client=there))
