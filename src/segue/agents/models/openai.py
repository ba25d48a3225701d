"""OpenAI's models, and those of compatible servers such as Ollama."""

import httpx2
from pydantic_ai.models import Model
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider

from segue.agents.models.keys import OLLAMA, ModelKeys


def make(keys: ModelKeys, key: str, client: httpx2.AsyncClient) -> Model:
    """Return the model in the host's settings."""
    url = keys.base_url or None
    if keys.provider == "ollama":
        there = OllamaProvider(base_url=url or OLLAMA, api_key=key, http_client=client)
        return OllamaModel(keys.name, provider=there)
    provider = OpenAIProvider(base_url=url, api_key=key, http_client=client)
    # Compatible servers have OpenAI's older API. OpenAI's own newer API keeps thoughts.
    if keys.provider == "openai-chat" or (keys.provider == "openai" and url):
        return OpenAIChatModel(keys.name, provider=provider)
    return OpenAIResponsesModel(keys.name, provider=provider)
