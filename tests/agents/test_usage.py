"""What a request cost, as each provider tells it in its own stream: aimock knows nothing of caches."""

from __future__ import annotations

import httpx2
import pytest

from segue.agents.models.keys import ModelKeys
from segue.agents.models.providers import ModelAgent
from segue.core.contracts.agents import Usage
from segue.core.values import Secret
from segue.testing.contracts.agents import events_of, text_of, work
from tests.agents.recorded import Recorded, Told


def _chat() -> list[Told]:
    plain = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o"}
    words = {"index": 0, "delta": {"role": "assistant", "content": "Yes."}, "finish_reason": None}
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 50,
        "total_tokens": 1050,
        "prompt_tokens_details": {"cached_tokens": 600},
        "completion_tokens_details": {"reasoning_tokens": 20},
    }
    return [
        plain | {"choices": [words]},
        plain | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        plain | {"choices": [], "usage": usage},
    ]


def _responses() -> list[Told]:
    plain = {"id": "r1", "object": "response", "created_at": 1, "model": "gpt-5", "output": [], "tools": []}
    plain |= {"parallel_tool_calls": True, "tool_choice": "auto"}
    item = {"id": "m1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    words = {"item_id": "m1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "Yes.", "annotations": []}
    usage = {
        "input_tokens": 1000,
        "input_tokens_details": {"cached_tokens": 600},
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 20},
        "total_tokens": 1050,
    }
    done = item | {"status": "completed", "content": [part]}
    told: list[Told] = [
        {"type": "response.created", "response": plain | {"status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", **words, "part": part | {"text": ""}},
        {"type": "response.output_text.delta", **words, "delta": "Yes.", "logprobs": []},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": plain | {"status": "completed", "output": [done], "usage": usage}},
    ]
    return [event | {"sequence_number": n} for n, event in enumerate(told)]


def _anthropic() -> list[Told]:
    usage = {
        "input_tokens": 100,
        "cache_creation_input_tokens": 300,
        "cache_read_input_tokens": 600,
        "output_tokens": 1,
    }
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6", "content": []}
    return [
        {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Yes."}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": usage | {"output_tokens": 50},
        },
        {"type": "message_stop"},
    ]


def _google() -> list[Told]:
    usage = {
        "promptTokenCount": 1000,
        "cachedContentTokenCount": 600,
        "candidatesTokenCount": 30,
        "thoughtsTokenCount": 20,
        "totalTokenCount": 1050,
    }
    said = {"content": {"role": "model", "parts": [{"text": "Yes."}]}, "finishReason": "STOP", "index": 0}
    return [{"candidates": [said], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash", "responseId": "g1"}]


@pytest.mark.parametrize(
    ("model", "told", "reasoning", "written", "cost"),
    [
        # Dollars a million tokens, in, from the cache, into it and out: 2.5, 1.25, -, 10; 1.25, 0.125, -, 10;
        # 3, 0.3, 3.75, 15; 0.3, 0.03, -, 2.5.
        ("openai-chat:gpt-4o", _chat(), 20, 0, 400 * 2.5 + 600 * 1.25 + 50 * 10),
        ("openai-responses:gpt-5", _responses(), 20, 0, 400 * 1.25 + 600 * 0.125 + 50 * 10),
        ("anthropic:claude-sonnet-4-6", _anthropic(), 0, 300, 100 * 3 + 600 * 0.3 + 300 * 3.75 + 50 * 15),
        ("google:gemini-2.5-flash", _google(), 20, 0, 400 * 0.3 + 600 * 0.03 + 50 * 2.5),
    ],
    ids=["chat", "responses", "anthropic", "google"],
)
async def test_the_whole_prompt_what_was_cached_thoughts_and_their_price(
    model: str, told: list[Told], reasoning: int, written: int, cost: float
) -> None:
    async with httpx2.AsyncClient(transport=Recorded(lambda _: told), timeout=60) as client:
        events = await events_of(ModelAgent(ModelKeys(model, api_key=Secret("key")), client), work("hello"))
    assert text_of(events) == "Yes."
    [usage] = [event for event in events if isinstance(event, Usage)]
    assert usage == Usage(model.partition(":")[2], 1000, 50, reasoning, 600, written, usage.cost)
    assert usage.cost == pytest.approx(cost / 1e6)
