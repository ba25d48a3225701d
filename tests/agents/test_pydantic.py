"""An Agent of pydantic-ai as it is, with the library's own models for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace
from pydantic import BaseModel
from pydantic_ai import Agent as Pydantic
from pydantic_ai import RunContext
from pydantic_ai import Tool as PydanticTool
from pydantic_ai.exceptions import ModelContextWindowExceededError, ModelRequestRejectedError, ModelRetry
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.models.test import TestModel as FixedModel
from pydantic_ai.usage import RequestUsage

from segue.agents.given import as_agent
from segue.agents.models.agent import PydanticAgent
from segue.agents.models.history import history, verbatim
from segue.core.contracts.agents import Agent, Compresses, PutOff, Tool, Usage, Work
from segue.core.messages import File, Reasoning, Text, ToolCall, ToolResult
from segue.core.prompt.wire import CUT_OFF
from segue.core.transcripts import AGENT, Draft
from segue.core.values import SessionId
from segue.errors import OverBudget
from segue.testing.contracts import AgentContract, RecallContract, ToolContract
from segue.testing.contracts.agents import events_of, person, said, text_of, work


def prompts(messages: list[ModelMessage]) -> list[str]:
    """What a model was asked, the oldest first."""
    requests = [message for message in messages if isinstance(message, ModelRequest)]
    return [str(part.content) for m in requests for part in m.parts if isinstance(part, UserPromptPart)]


async def remembers(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
    yield "You said: "
    yield " / ".join(prompts(messages))


async def errands(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    done = any(isinstance(part, ToolReturnPart) for message in messages for part in message.parts)
    if "tool" in prompts(messages)[-1] and not done:
        yield {0: DeltaToolCall("kettle", '{"cups": 2}', tool_call_id="c1")}
    else:
        yield f"Done: {prompts(messages)[-1]}"


def kettle(cups: int) -> str:
    """Boil water."""
    return f"{cups} cups are hot"


class TestFixed(AgentContract):
    questions: ClassVar = {}

    @pytest.fixture
    def agent(self) -> Agent:
        return as_agent(Pydantic(FixedModel()))


class TestRecall(RecallContract):
    @pytest.fixture
    def agent(self) -> Agent:
        return as_agent(Pydantic(FunctionModel(stream_function=remembers)))


class TestTools(ToolContract):
    @pytest.fixture
    def agent(self) -> Agent:
        return as_agent(Pydantic(FunctionModel(stream_function=errands), tools=[kettle]))


async def test_its_own_tools_and_those_of_the_gateway_are_both_there() -> None:
    offered: list[str] = []

    async def looks(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        offered.extend(tool.name for tool in info.function_tools)
        yield "I see."

    class Sessions:
        offered = (Tool("sessions_list", "Lists sessions.", {"type": "object", "properties": {}}),)

        async def call(self, call: ToolCall) -> ToolResult:
            return ToolResult(call.id, [])

    agent = as_agent(Pydantic(FunctionModel(stream_function=looks), tools=[kettle]))
    await events_of(agent, Work(SessionId("s"), 1, "", (), (person("hello"),), tools=Sessions()))
    assert sorted(offered) == ["kettle", "sessions_list"]


async def test_each_request_is_reserved_by_the_most_that_it_may_take() -> None:
    class Ledger:
        def __init__(self) -> None:
            self.asked: list[int | None] = []

        async def reserve(self, tokens: int | None = None) -> None:
            self.asked.append(tokens)
            if len(self.asked) > 2:
                raise OverBudget("The budget is used up.")

    model = FunctionModel(stream_function=errands)
    bounded, budget = Pydantic(model, tools=[kettle], model_settings={"max_tokens": 1000}), Ledger()
    turn = replace(work("use a tool"), budget=budget)
    await events_of(as_agent(bounded), turn)
    first, second = budget.asked
    assert first is not None
    assert second is not None
    assert 1000 + len("use a tool") < first < second, "the second prompt has the tool's result, too"
    with pytest.raises(OverBudget):
        await events_of(as_agent(bounded), turn)
    unbounded, budget = Pydantic(FixedModel()), Ledger()
    await events_of(as_agent(unbounded), replace(turn, budget=budget))
    assert budget.asked == [None]


async def test_a_tool_of_the_gateway_that_fails_is_a_failed_result() -> None:
    class Broken:
        offered = (Tool("kettle", "Boils water.", {"type": "object", "properties": {}}),)

        async def call(self, call: ToolCall) -> ToolResult:
            return ToolResult(call.id, "There is no water.", failed=True)

    agent = as_agent(Pydantic(FunctionModel(stream_function=errands)))
    events = await events_of(agent, Work(SessionId("s"), 1, "", (), (person("use a tool"),), tools=Broken()))
    assert ToolResult("c1", "There is no water.", failed=True) in events
    assert text_of(events) == "Done: use a tool"


async def test_its_instructions_and_system_prompt_hold_in_every_turn() -> None:
    heard: list[str] = []

    async def listens(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        heard.append(f"{info.instructions} | {messages[0].parts[0]}")
        yield "Yes."

    agent = as_agent(
        Pydantic(FunctionModel(stream_function=listens), system_prompt="You are a cook.", instructions="Be brief.")
    )
    await events_of(agent, work("hello", transcript=said([], person("hi"), Draft(AGENT, (Text("Hi."),)))))
    assert "Be brief." in heard[0]
    assert "You talk to Ann." in heard[0]
    assert "You are a cook." in heard[0]


async def test_a_tool_whose_deps_are_the_work_gets_the_turn() -> None:
    brought: Pydantic[Work, str] = Pydantic(FunctionModel(stream_function=errands), deps_type=Work)
    seen: list[SessionId] = []

    @brought.tool(name="kettle")
    async def boil(ctx: RunContext[Work], cups: int) -> str:
        seen.append(ctx.deps.session)
        return f"{cups}"

    await events_of(as_agent(brought), work("use a tool", session="s7"))
    assert seen == ["s7"]


async def test_an_answer_that_is_no_text_is_told_as_json() -> None:
    class Cake(BaseModel):
        name: str
        eggs: int

    events = await events_of(as_agent(Pydantic(FixedModel(), output_type=Cake)), work("bake"))
    assert text_of(events) == '{"name":"a","eggs":0}'


async def test_a_tool_that_wants_another_try_is_a_failed_result() -> None:
    tries: list[int] = []

    brought = Pydantic(FunctionModel(stream_function=errands))

    @brought.tool_plain(name="kettle")
    def fussy(cups: int) -> str:
        tries.append(cups)
        if len(tries) == 1:
            raise ModelRetry("Say it again.")
        return "hot"

    events = await events_of(as_agent(brought), work("use a tool"))
    assert next(event for event in events if isinstance(event, ToolResult)).failed


async def test_what_a_provider_gave_comes_back_in_its_place() -> None:
    call = {"part_kind": "tool-call", "tool_name": "kettle", "tool_call_id": "c1", "provider_name": "google"}
    thought = Reasoning(
        "google", {"part_kind": "thinking", "content": "Hm.", "signature": "s", "provider_name": "google"}
    )
    parts = (
        thought,
        Text("One moment."),
        Reasoning("google", {"part_kind": "text", "id": "msg_1", "provider_name": "google"}),
        Reasoning("google", {**call, "provider_details": {"thought_signature": "abc"}}),
        Reasoning("somebody", ["in a form of their own"]),
        ToolCall("c1", "kettle", {"cups": 2}),
        ToolResult("c1", "hot"),
        ToolCall("c2", "kettle", {"cups": 1}),
    )
    messages = await history(work("And?", transcript=said([], person("Tea!"), Draft(AGENT, parts))))
    first, second = [message for message in messages if isinstance(message, ModelResponse)]
    thinking, text, kettle_call = first.parts
    assert verbatim(thinking) == thought
    assert isinstance(text, TextPart)
    assert (text.content, text.id) == ("One moment.", "msg_1")
    assert getattr(kettle_call, "provider_details", None) == {"thought_signature": "abc"}
    assert getattr(kettle_call, "args", None) == {"cups": 2}
    assert first.provider_name == "google"
    assert len(second.parts) == 1
    results = [part for m in messages for part in m.parts if isinstance(part, ToolReturnPart)]
    assert [(part.content, part.outcome) for part in results] == [("hot", "success"), (CUT_OFF, "interrupted")]


async def test_what_is_too_long_to_be_summed_up_at_once_is_summed_up_in_pieces() -> None:
    asked: list[int] = []

    async def small(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(len(messages))
        assert not info.function_tools, "whoever sums up has nothing else to do"
        if len(messages) > 4:
            raise ModelContextWindowExceededError("small", "too long")
        return ModelResponse([TextPart(f"summary of {len(messages)}")])

    agent = as_agent(Pydantic(FunctionModel(small), tools=[kettle]))
    assert isinstance(agent, Compresses)
    talk = [draft for n in range(4) for draft in (person(f"question {n}"), Draft(AGENT, (Text(f"answer {n}"),)))]
    before = Work(SessionId("s"), 9, "", tuple(said([], *talk)), ())
    made = await agent.summary(before, "")
    assert made.text.startswith("summary of")
    assert len(made.usage) == len([count for count in asked if count <= 4]), "each piece has its price"
    assert max(asked) > 4
    assert asked[-1] <= 4


class Picture:
    """A picture that is kept."""

    async def read(self, file: File) -> bytes:
        return b"not really a picture"


async def test_a_picture_that_its_model_cannot_take_is_told_instead_and_spoils_no_later_turn() -> None:
    seen: list[str] = []

    def look(messages: list[ModelMessage]) -> str:
        shown = [part.content for message in messages for part in message.parts if isinstance(part, UserPromptPart)]
        if any(isinstance(item, BinaryContent) for content in shown for item in content):
            raise ModelRequestRejectedError("blind", "this model takes no images")
        seen.append(str(shown))
        return "I can't see it."

    async def blind(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield look(messages)

    async def sums_up(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse([TextPart(look(messages))])

    agent = PydanticAgent(Pydantic(FunctionModel(sums_up, stream_function=blind)))
    sent = Draft(person("Look!").author, (Text("Look!"), File("cat.png", "image/png", "a", 20)))
    events = await events_of(agent, Work(SessionId("s"), 1, "", (), (sent,), files=Picture()))
    assert text_of(events) == "I can't see it."
    before = tuple(said([], sent, Draft(AGENT, (Text("I can't see it."),))))
    later = Work(SessionId("s"), 2, "", before, (person("And now?"),), files=Picture())
    assert text_of(await events_of(agent, later)) == "I can't see it."
    assert (await agent.summary(later, "")).text == "I can't see it."
    assert len(seen) == 3
    assert all('"media":"image/png","bytes":20' in told for told in seen)


async def test_an_error_of_its_own_code_is_not_tried_again() -> None:
    tries: list[int] = []

    async def breaks(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        tries.append(1)
        yield str(1 / (len(tries) - 1))

    with pytest.raises(ZeroDivisionError):
        await events_of(PydanticAgent(Pydantic(FunctionModel(stream_function=breaks)), retries=3), work("hello"))
    assert len(tries) == 1


@pytest.mark.parametrize("thought", [{"output_reasoning_tokens": 5}, {"details": {"reasoning_tokens": 5}}])
def test_thoughts_and_caches_are_counted(thought: dict[str, Any]) -> None:
    spent = RequestUsage(input_tokens=100, output_tokens=20, cache_read_tokens=60, cache_write_tokens=10, **thought)
    response = ModelResponse([TextPart("Yes.")], usage=spent, model_name="a model that nobody sells")
    agent = PydanticAgent(Pydantic(FixedModel()))
    assert agent._usage(response) == Usage("a model that nobody sells", 100, 20, 5, 60, 10, None)


async def tidies(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    results = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    if not results:
        yield {0: DeltaToolCall("remove", '{"path": "old.txt"}', tool_call_id="c1")}
    else:
        yield f"It came to: {results[-1].content}"


@pytest.mark.parametrize(("answer", "text"), [("yes", "removed old.txt"), ("no", "The person said no.")])
async def test_a_tool_that_needs_approval_is_asked_about_first(answer: str, text: str) -> None:
    asked: list[tuple[str, str, str | None]] = []
    removed: list[str] = []

    def remove(path: str) -> str:
        removed.append(path)
        return f"removed {path}"

    async def ask(words: str, choices: Sequence[str] = (), key: str | None = None, allows: str = "") -> str:
        asked.append((words, allows, key))
        return answer

    agent = as_agent(
        Pydantic(FunctionModel(stream_function=tidies), tools=[PydanticTool(remove, requires_approval=True)])
    )
    told = await events_of(agent, replace(work("tidy up"), ask=ask))
    assert [(words, allows) for words, allows, _ in asked] == [("May I use remove(path='old.txt')?", "remove")]
    assert removed == (["old.txt"] if answer == "yes" else [])
    assert text_of(told) == f"It came to: {text}"
    assert len([event for event in told if isinstance(event, ToolCall)]) == 1
    again = await events_of(agent, replace(work("tidy up"), ask=ask))
    assert text_of(again) == text_of(told)
    assert asked[0][2] == asked[1][2], "a turn that runs again asks under the same key"


class Person:
    """Somebody whom the gateway asks, and another tool of it."""

    offered = (Tool("ask", "Asks.", {"type": "object"}), Tool("look", "Looks.", {"type": "object"}))

    async def call(self, call: ToolCall) -> ToolResult:
        return ToolResult(call.id, f"{call.name}: blue")


@pytest.mark.parametrize("beside", [(), ("look",)], ids=["alone", "beside another call"])
async def test_a_call_that_only_asks_is_kept_and_its_model_is_not_asked_again(beside: tuple[str, ...]) -> None:
    requests: list[int] = []

    async def wonders(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        requests.append(len(messages))
        results = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        if results:
            yield f"So it is {results[-1].content}."
        else:
            yield {n: DeltaToolCall(name, "{}", tool_call_id=name) for n, name in enumerate(("ask", *beside))}

    agent = as_agent(Pydantic(FunctionModel(stream_function=wonders)))
    asked = replace(work("paint it"), tools=Person())
    told = await events_of(agent, asked)
    assert [event.calls for event in told if isinstance(event, PutOff)] == ([] if beside else [("ask",)])
    if not beside:
        again = await events_of(agent, replace(asked, journal=(ToolCall("ask", "ask", {}),)))
        assert text_of(again) == text_of(told) == "So it is ask: blue."
        assert not [event for event in again if isinstance(event, ToolCall)], "it was told before"
        assert len(requests) == 3
