"""Where Google's models are asked: at Google's own address, or at any that speaks like it."""

import httpx2
import pytest

from segue.agents.models.keys import ModelKeys
from segue.agents.models.providers import ModelAgent
from segue.core.values import Secret
from segue.testing.contracts.agents import events_of, text_of, work
from tests.agents.recorded import Recorded

YES = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Yes."}]}, "finishReason": "STOP", "index": 0}]}


@pytest.mark.parametrize(
    ("base_url", "asked"),
    [
        ("", "https://generativelanguage.googleapis.com/v1"),
        ("http://127.0.0.1:9", "http://127.0.0.1:9/v1"),
        ("http://127.0.0.1:9/v1beta", "http://127.0.0.1:9/v1beta"),
        ("http://127.0.0.1:9/proxy/v1alpha/", "http://127.0.0.1:9/proxy/v1alpha"),
    ],
)
async def test_an_address_may_say_which_api_it_means(base_url: str, asked: str) -> None:
    asked_at: list[str] = []

    async def leaves(request: httpx2.Request) -> None:
        asked_at.append(str(request.url))

    provider = Recorded(lambda _: [YES])
    async with httpx2.AsyncClient(transport=provider, timeout=60, event_hooks={"request": [leaves]}) as client:
        keys = ModelKeys("google:gemini-2.5-flash", base_url, Secret("key"))
        assert text_of(await events_of(ModelAgent(keys, client), work("hello"))) == "Yes."
    [address] = asked_at
    assert address.partition("/models/")[0] == asked
