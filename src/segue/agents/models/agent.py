"""Runs an `Agent` of pydantic-ai unchanged, with Segue's transcripts and tools added.

Law: no text is sent twice. If a response breaks before its first piece, the request is repeated. If it breaks later,
the attempt fails, and the gateway's next attempt replaces the shown text on the platform. The journal has the tool
calls by then, so they aren't repeated.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace
from pydantic_ai import AgentRunResult, AgentRunResultEvent
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import ReinjectSystemPrompt
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelNotFoundError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    ModelUnavailableError,
    ToolFailed,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema, to_json, to_jsonable_python

from segue.agents.models.attachments import withheld
from segue.agents.models.bounds import Reserving
from segue.agents.models.deferred import Deferred
from segue.agents.models.history import history, history_of, put_off, verbatim
from segue.agents.models.keys import Prices
from segue.core.contracts.agents import (
    Event,
    NoBudget,
    PutOff,
    SummedUp,
    Tools,
    Usage,
    Work,
)
from segue.core.messages import Part, Text, ToolCall, ToolResult
from segue.core.prompt.compaction import request_to_sum_up
from segue.errors import AgentFailed, Invalid, ModelRefused, TooLong

_PASSES = (ModelConnectionError, ModelRateLimitError, ModelServerError, ModelUnavailableError)
"""Temporary errors."""
_OTHER_FAULTS = (ModelAuthenticationError, ModelContextWindowExceededError, ModelNotFoundError)
"""Errors whose cause isn't the content of the messages."""
_GARBAGE = (ModelAPIError, UnexpectedModelBehavior)
"""Errors for an unreadable response. Their subclasses mean that the request was rejected."""
_LONGEST_WAIT = 30.0
_ASK = "ask"
"""The name of the gateway's tool that asks a person."""
_ANY = SchemaValidator(core_schema.any_schema())
"""A validator that accepts anything: the gateway checks the arguments of its tools itself."""


class PydanticAgent:
    """Answers by an `Agent` of pydantic-ai. An agent whose deps are a `Work` receives the turn."""

    def __init__(
        self,
        agent: AbstractAgent[Any, Any],
        *,
        retries: int = 0,
        window: int = 0,
        prices: Prices | None = None,
        notes: bool = False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._agent = agent
        self._retries = retries
        self._prices = prices
        self._sleep = sleep
        self.window = window or _window(agent)
        self.notes = notes
        self._provider = _provider(agent)

    async def answer(self, work: Work) -> AsyncGenerator[Event, None]:
        """Yield the reply as it arrives."""
        done: list[Part] = []
        failed, refused = 0, False
        while True:
            told = len(done)
            messages = await history(work, done, self._provider)
            try:
                async with aclosing(self._run(work, withheld(messages) if refused else messages)) as events:
                    async for event in events:
                        if isinstance(event, Part):
                            done.append(event)
                            failed = 0
                        yield event
            except ModelContextWindowExceededError as error:
                raise TooLong(f"It is more than {error.model_name} takes.") from error
            except (ModelAPIError, UnexpectedModelBehavior) as error:
                # After a tool result a new response begins, so none of it was sent yet.
                fresh = len(done) == told or isinstance(done[-1], ToolResult)
                if fresh and not refused and _refuses(error) and withheld(messages) != messages:
                    refused = True
                    continue
                if not fresh or failed == self._retries or not _passes(error):
                    raise _explained(error) from error
                failed += 1
                await self._sleep(_wait(error, failed))
            else:
                return

    async def summary(self, work: Work, focus: str) -> SummedUp:
        """Summarize the transcript. If it exceeds the model's window, summarize it in halves."""
        messages = await history_of(work.transcript, work, self._provider)
        return await self._summed_up(messages, focus, work)

    async def _summed_up(self, messages: list[ModelMessage], focus: str, work: Work) -> SummedUp:
        asked = [*messages, ModelRequest([UserPromptPart(request_to_sum_up(focus))])]
        try:
            made = await self._ask(asked, work)
        except ModelContextWindowExceededError:
            half = _middle(messages)
            if not half:
                raise
            earlier = await self._summed_up(messages[:half], focus, work)
            rest = [ModelRequest([UserPromptPart(earlier.text)]), *messages[half:]]
            made = await self._summed_up(rest, focus, work)
            return SummedUp(made.text, (*earlier.usage, *made.usage))
        if not made.text.strip():
            raise Invalid("summary", "the model summed up to nothing", "Try again.")
        return made

    async def _ask(self, messages: list[ModelMessage], work: Work) -> SummedUp:
        """Ask the model without tools, which a summary doesn't need."""
        failed = 0
        while True:
            try:
                with self._agent.override(tools=[], toolsets=[]):
                    done = await self._agent.run(
                        None, message_history=messages, output_type=str, **self._settings(work)
                    )
            except (ModelAPIError, UnexpectedModelBehavior) as error:
                if _refuses(error) and withheld(messages) != messages:
                    messages = withheld(messages)
                    continue
                if failed == self._retries or not _passes(error):
                    raise
                failed += 1
                await self._sleep(_wait(error, failed))
            else:
                said = [message for message in done.new_messages() if isinstance(message, ModelResponse)]
                return SummedUp(done.output, tuple(self._usage(response) for response in said))

    async def _run(self, work: Work, messages: list[ModelMessage]) -> AsyncGenerator[Event, None]:
        """Run the agent from the transcript and the steps so far. Ask people about deferred tool calls."""
        told = put_off(work.journal)
        asking, results = Deferred(work), None
        result: AgentRunResult[Any] | None = None
        while True:
            async with aclosing(self._once(work, messages, results)) as events:
                async for event in events:
                    if isinstance(event, AgentRunResult):
                        result = event
                    elif not isinstance(event, ToolCall) or event.id not in told:
                        # A deferred call comes up again when it is made.
                        told |= {event.id} if isinstance(event, ToolCall) else set()
                        yield event
            if result is None or not isinstance(result.output, DeferredToolRequests):
                return
            if waiting := tuple(call.tool_call_id for call in [*result.output.approvals, *result.output.calls]):
                yield PutOff(waiting)
            results, messages = await asking.results(result.output), result.all_messages()

    async def _once(
        self, work: Work, messages: list[ModelMessage], results: DeferredToolResults | None
    ) -> AsyncGenerator[Event | AgentRunResult[Any], None]:
        """Run the agent once; yield its events and its result."""
        toolsets = [GatewayTools(work.tools)] if work.tools.offered else []
        spoke, counted = False, 0
        async with self._agent.run_stream_events(
            None,
            message_history=messages,
            toolsets=toolsets,
            deferred_tool_results=results,
            output_type=_or_deferred(self._agent.output_type),
            **self._settings(work),
        ) as events:
            async for event in events:
                for said in _events(event):
                    spoke = spoke or isinstance(said, Text)
                    yield said
                if isinstance(event, FunctionToolCallEvent | AgentRunResultEvent):
                    responses = [m for m in events.new_messages() if isinstance(m, ModelResponse)]
                    for response in responses[counted:]:
                        yield self._usage(response)
                    if isinstance(event, FunctionToolCallEvent) and _only_asks(responses[-1:], work):
                        # The retry asks the same question, so the model needn't run again.
                        yield PutOff((event.part.tool_call_id,))
                    counted = len(responses)
                if isinstance(event, AgentRunResultEvent):
                    if not spoke and not isinstance(event.result.output, DeferredToolRequests):
                        for said in _output(event.result.output):
                            yield said
                    yield event.result

    def _settings(self, work: Work) -> dict[str, Any]:
        """Return the arguments of a run, apart from its messages."""
        unlimited = isinstance(work.budget, NoBudget)
        return {
            "instructions": work.context or None,
            "deps": work if getattr(self._agent, "deps_type", None) is Work else None,
            "capabilities": [ReinjectSystemPrompt(id=None), *([] if unlimited else [Reserving(work=work)])],
            "infer_name": False,
        }

    def _usage(self, response: ModelResponse) -> Usage:
        spent = response.usage
        usage = Usage(
            response.model_name or "",
            spent.input_tokens,
            spent.output_tokens,
            spent.output_reasoning_tokens or spent.details.get("reasoning_tokens", 0),
            spent.cache_read_tokens,
            spent.cache_write_tokens,
        )
        return replace(usage, cost=self._prices.cost(usage) if self._prices else _cost(response))


class GatewayTools(AbstractToolset[Any]):
    """The gateway's tools in a turn, as a toolset of pydantic-ai."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    @property
    def id(self) -> str:
        """The id of the toolset."""
        return "segue"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:  # noqa: ARG002 -- the library's
        """Return the tools with their schemas."""
        return {
            tool.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=tool.name, parameters_json_schema=dict(tool.parameters), description=tool.does
                ),
                max_retries=0,
                args_validator=_ANY,
            )
            for tool in self._tools.offered
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],  # noqa: ARG002 -- the library's
    ) -> Any:
        """Run a tool of the gateway. A model reads an error as a failed result."""
        result = await self._tools.call(ToolCall(ctx.tool_call_id or "", name, tool_args))
        if result.failed:
            raise ToolFailed(result.content if isinstance(result.content, str) else to_json(result.content).decode())
        return result.content


def _events(event: object) -> Iterator[Event]:
    """Convert an event of the library."""
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            if text:
                yield Text(text)
        case PartEndEvent(part=part):
            if (kept := verbatim(part)) is not None:
                yield kept
        case FunctionToolCallEvent(part=call):
            yield ToolCall(call.tool_call_id, call.tool_name, call.args_as_dict())
        case FunctionToolResultEvent(part=part):
            yield ToolResult(part.tool_call_id, _content(part), failed=part.outcome != "success")
        case _:
            """The transcript stores nothing of the library's other events."""


def _only_asks(responses: list[ModelResponse], work: Work) -> bool:
    """Return whether a response's only calls are to the gateway's tool for asking people.

    That tool asks the same question only once.
    """
    names = {call.tool_name for response in responses for call in response.tool_calls}
    return names == {_ASK} and any(tool.name == _ASK for tool in work.tools.offered)


def _or_deferred(output: Any) -> Any:
    """Allow deferred tool calls besides an agent's own output."""
    several = list(output) if isinstance(output, list | tuple) else [output]
    return several if DeferredToolRequests in several else [*several, DeferredToolRequests]


def _content(part: ToolReturnPart) -> Any:
    """Return a tool's result as JSON values."""
    return to_jsonable_python(part.content, fallback=str, bytes_mode="base64")


def _output(output: object) -> Iterator[Event]:
    """Return an agent's output as text; structured output becomes JSON."""
    text = output if isinstance(output, str) else to_json(output, fallback=str).decode()
    if text and output is not None:
        yield Text(text)


def _cost(response: ModelResponse) -> float | None:
    """Return the cost of a request, if the library knows the model's price."""
    if not response.model_name:
        return None
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError):
        return None


def _passes(error: ModelAPIError | UnexpectedModelBehavior) -> bool:
    """Return whether a retry may help.

    An unreadable response may be better next time; a rejected request stays rejected.
    """
    return isinstance(error, _PASSES) or type(error) in _GARBAGE


def _explained(error: ModelAPIError | UnexpectedModelBehavior) -> AgentFailed:
    """Explain a provider's error and what the host can do about it."""
    model = error.model_name if isinstance(error, ModelAPIError) else "the model"
    keys = "in the table of the agent in segue.toml."
    match error:
        case ModelAuthenticationError():
            return AgentFailed(f"The provider of {model} refuses the key.", f"See `api_key` {keys}", passes=False)
        case ModelNotFoundError():
            return AgentFailed(f"The provider knows no model {model}.", f"See `model` {keys}", passes=False)
        case ModelConnectionError():
            return AgentFailed(f"No server answers for {model}.", f"Is it up? See `base_url` {keys}", passes=True)
        case ModelRateLimitError():
            return AgentFailed(f"The provider of {model} wants fewer requests.", "Wait a while.", passes=True)
        case ContentFilterError() | ModelRequestRejectedError():
            return ModelRefused(f"The provider of {model} refuses what it was sent ({type(error).__name__}).", "")
        case _:
            problem = f"The provider of {model} failed ({type(error).__name__})."
            return AgentFailed(problem, "`segue doctor` says more.", passes=_passes(error))


def _refuses(error: ModelAPIError | UnexpectedModelBehavior) -> bool:
    """Return whether the provider rejects the content. The cause may be a picture that the model can't read."""
    return isinstance(error, ModelRequestRejectedError) and not isinstance(error, _OTHER_FAULTS)


def _wait(error: ModelAPIError | UnexpectedModelBehavior, failed: int) -> float:
    """Return the seconds before a retry: the provider's own number, else an exponential delay."""
    asked = error.retry_after if isinstance(error, ModelAPIError) else None
    return float(min(_LONGEST_WAIT, asked or 0.5 * 2 ** (failed - 1)))


def _middle(messages: list[ModelMessage]) -> int:
    """Return the index that halves a history.

    The cut is before a person's message, so that a call keeps its result.
    """
    starts = [
        at
        for at, message in enumerate(messages)
        if at and isinstance(message, ModelRequest) and isinstance(message.parts[0], UserPromptPart)
    ]
    return min(starts, key=lambda at: abs(2 * at - len(messages)), default=0)


def _provider(agent: AbstractAgent[Any, Any]) -> str:
    """Return the provider of an agent's model; empty if it may be one of several."""
    model = getattr(agent, "model", None)
    return model.system if isinstance(model, Model) and not isinstance(model, FallbackModel) else ""


def _window(agent: AbstractAgent[Any, Any]) -> int:
    """Return the window of an agent's model in tokens, if the library knows it."""
    model = getattr(agent, "model", None)
    return model.profile.get("context_window") or 0 if isinstance(model, Model) else 0
