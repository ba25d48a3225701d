"""What providers sign beside a call goes back to them with it, in the same turn and in one that is tried again.

Both refuse a call that comes back without it; aimock signs no calls, so these are responses as they come from them.
"""

from __future__ import annotations

import httpx2
import pytest

from segue.agents.models.keys import ModelKeys
from segue.agents.models.providers import ModelAgent
from segue.core.contracts.agents import Tool, Work
from segue.core.messages import Part, ToolCall, ToolResult
from segue.core.values import Secret, SessionId
from segue.testing.contracts.agents import events_of, person, text_of
from tests.agents.recorded import Recorded, Told

SIGNED = "c2lnbmVkIGJ5IHRoZSBwcm92aWRlcg=="


def _google(*parts: Told) -> list[Told]:
    said = {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", "index": 0}
    return [{"candidates": [said], "usageMetadata": {"promptTokenCount": 9}, "modelVersion": "m", "responseId": "r"}]


def _anthropic(*blocks: tuple[Told, Told]) -> list[Told]:
    message: Told = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
    }
    message |= {"stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 1}}
    told: list[Told] = [{"type": "message_start", "message": message}]
    for index, (block, delta) in enumerate(blocks):
        told.append({"type": "content_block_start", "index": index, "content_block": block})
        told.append({"type": "content_block_delta", "index": index, "delta": delta})
        told.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    return [*told, {"type": "message_delta", "delta": end, "usage": {"output_tokens": 5}}, {"type": "message_stop"}]


CALL = {"name": "kettle", "args": {"cups": 2}, "id": "call-1"}
USE = {"type": "tool_use", "id": "call-1", "name": "kettle", "input": {}}
PROVIDERS = {
    "google:gemini-3-pro": (
        _google({"functionCall": CALL, "thoughtSignature": SIGNED}),
        _google({"text": "Done."}),
    ),
    "anthropic:claude-sonnet-4-6": (
        _anthropic(
            (
                {"type": "thinking", "thinking": "Tea.", "signature": ""},
                {"type": "signature_delta", "signature": SIGNED},
            ),
            (USE, {"type": "input_json_delta", "partial_json": '{"cups": 2}'}),
        ),
        _anthropic(({"type": "text", "text": ""}, {"type": "text_delta", "text": "Done."})),
    ),
}


class Kettle:
    """A tool of the gateway's."""

    offered = (Tool("kettle", "Boils water.", {"type": "object", "properties": {"cups": {"type": "integer"}}}),)

    async def call(self, call: ToolCall) -> ToolResult:
        return ToolResult(call.id, "2 cups are hot")


@pytest.mark.parametrize("model", sorted(PROVIDERS))
async def test_a_signature_goes_back_with_its_call(model: str) -> None:
    calls, done = PROVIDERS[model]
    provider = Recorded(lambda sent: done if "2 cups are hot" in sent else calls)
    async with httpx2.AsyncClient(transport=provider, timeout=60) as client:
        agent = ModelAgent(ModelKeys(model, api_key=Secret("key")), client)
        events = await events_of(agent, Work(SessionId("s"), 1, "", (), (person("Tea!"),), tools=Kettle()))
        assert text_of(events) == "Done."
        journal = tuple(part for part in events if isinstance(part, Part))[:-1]
        assert isinstance(journal[-1], ToolResult)
        again = Work(SessionId("s"), 1, "", (), (person("Tea!"),), journal, tools=Kettle())
        assert text_of(await events_of(agent, again)) == "Done."
    first, second, third = provider.sent
    assert SIGNED not in first
    assert second.count(SIGNED) == 1
    assert third.count(SIGNED) == 1
