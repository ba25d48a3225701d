"""An `Agent` of pydantic-ai as it is: its own model, instructions and tools, with Segue's transcripts and tools.

Law: what was told is never told twice. A response that broke before any of it was told is asked for again; one that
broke later fails the try, and the gateway's next try replaces on the platform what this one had shown. What tools did
is in the journal by then, and isn't done again.
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
"""Trouble that passes by itself."""
_OTHER_FAULTS = (ModelAuthenticationError, ModelContextWindowExceededError, ModelNotFoundError)
"""Errors that a provider raises whatever there is in the messages."""
_GARBAGE = (ModelAPIError, UnexpectedModelBehavior)
"""Errors for a response that nobody can read; their subclasses say that something was refused."""
_LONGEST_WAIT = 30.0
_ASK = "ask"
"""The gateway's tool that asks a person."""
_ANY = SchemaValidator(core_schema.any_schema())
"""The gateway checks the arguments of its tools itself."""


class PydanticAgent:
    """Answers by an `Agent` of pydantic-ai; one whose deps are a `Work` gets the turn."""

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
        """The reply as it comes."""
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
                # After a result a response begins: nothing of it was told yet.
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
        """A summary of the transcript; one that is too long for the model is summed up piece by piece."""
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
        """The model's answer, without tools: a summary needs none."""
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
        """A run of the agent, from what was said and done so far; what its tools wait for is asked of people."""
        told = put_off(work.journal)
        asking, results = Deferred(work), None
        result: AgentRunResult[Any] | None = None
        while True:
            async with aclosing(self._once(work, messages, results)) as events:
                async for event in events:
                    if isinstance(event, AgentRunResult):
                        result = event
                    elif not isinstance(event, ToolCall) or event.id not in told:
                        # A call that was put off is told of again when it is made.
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
        """One run of the library, and what it came to."""
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
                        # Asked again it is the same question, so the model needn't be.
                        yield PutOff((event.part.tool_call_id,))
                    counted = len(responses)
                if isinstance(event, AgentRunResultEvent):
                    if not spoke and not isinstance(event.result.output, DeferredToolRequests):
                        for said in _output(event.result.output):
                            yield said
                    yield event.result

    def _settings(self, work: Work) -> dict[str, Any]:
        """The arguments of a run beside its messages."""
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
    """The gateway's tools in a turn, as tools of a model."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    @property
    def id(self) -> str:
        """Its name among the toolsets of an agent."""
        return "segue"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:  # noqa: ARG002 -- the library's
        """The tools as a model reads them."""
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
        """Have the gateway do it; what can't be done the model reads as a failed result."""
        result = await self._tools.call(ToolCall(ctx.tool_call_id or "", name, tool_args))
        if result.failed:
            raise ToolFailed(result.content if isinstance(result.content, str) else to_json(result.content).decode())
        return result.content


def _events(event: object) -> Iterator[Event]:
    """An event of the library, in Segue's words."""
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
            """Its other events tell nothing that a transcript keeps."""


def _only_asks(responses: list[ModelResponse], work: Work) -> bool:
    """Whether a response does nothing but ask, by the gateway's tool for that, which asks the same thing once."""
    names = {call.tool_name for response in responses for call in response.tool_calls}
    return names == {_ASK} and any(tool.name == _ASK for tool in work.tools.offered)


def _or_deferred(output: Any) -> Any:
    """An agent's own output, or calls that its tools put off."""
    several = list(output) if isinstance(output, list | tuple) else [output]
    return several if DeferredToolRequests in several else [*several, DeferredToolRequests]


def _content(part: ToolReturnPart) -> Any:
    """A tool's result as it can be kept."""
    return to_jsonable_python(part.content, fallback=str, bytes_mode="base64")


def _output(output: object) -> Iterator[Event]:
    """An agent's output that isn't words."""
    text = output if isinstance(output, str) else to_json(output, fallback=str).decode()
    if text and output is not None:
        yield Text(text)


def _cost(response: ModelResponse) -> float | None:
    """The cost of a request, where the model's price is known."""
    if not response.model_name:
        return None
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError):
        return None


def _passes(error: ModelAPIError | UnexpectedModelBehavior) -> bool:
    """Whether the same request may work in a moment: garbage may be better then, what was refused stays refused."""
    return isinstance(error, _PASSES) or type(error) in _GARBAGE


def _explained(error: ModelAPIError | UnexpectedModelBehavior) -> AgentFailed:
    """An error of a provider's in words, with what its host can do about it."""
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
    """Whether the provider finds fault with what it was sent, which may be a picture that its model can't take."""
    return isinstance(error, ModelRequestRejectedError) and not isinstance(error, _OTHER_FAULTS)


def _wait(error: ModelAPIError | UnexpectedModelBehavior, failed: int) -> float:
    """Seconds until it is worth another try: what the provider asks for, else ever longer."""
    asked = error.retry_after if isinstance(error, ModelAPIError) else None
    return float(min(_LONGEST_WAIT, asked or 0.5 * 2 ** (failed - 1)))


def _middle(messages: list[ModelMessage]) -> int:
    """The index where a history can be cut in two: before somebody's message, never between a call and its result."""
    starts = [
        at
        for at, message in enumerate(messages)
        if at and isinstance(message, ModelRequest) and isinstance(message.parts[0], UserPromptPart)
    ]
    return min(starts, key=lambda at: abs(2 * at - len(messages)), default=0)


def _provider(agent: AbstractAgent[Any, Any]) -> str:
    """The provider of an agent's model; empty if it may be one of several."""
    model = getattr(agent, "model", None)
    return model.system if isinstance(model, Model) and not isinstance(model, FallbackModel) else ""


def _window(agent: AbstractAgent[Any, Any]) -> int:
    """The window of an agent's model in tokens, where the library knows it."""
    model = getattr(agent, "model", None)
    return model.profile.get("context_window") or 0 if isinstance(model, Model) else 0
