"""Reserves the highest possible cost of a model request before it is sent."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import RunContext
from pydantic_core import to_json

from segue.core.contracts.agents import Work


@dataclass
class Reserving(AbstractCapability[Any]):
    """Reserves budget for each request of a turn: its prompt at a token a byte, and the longest answer."""

    _: KW_ONLY
    work: Work

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Reserve budget for a request. Without `max_tokens` its cost has no bound."""
        longest = (request_context.model_settings or ctx.model_settings or {}).get("max_tokens")
        bound = None
        if longest is not None:
            prompt = ModelMessagesTypeAdapter.dump_json(request_context.messages)
            bound = len(prompt) + len(to_json(request_context.model_request_parameters, fallback=str)) + longest
        await self.work.budget.reserve(bound)
        return request_context
