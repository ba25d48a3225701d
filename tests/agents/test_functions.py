"""A function of one's own as the agent: what it gets, what it may say, and what is refused at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from segue.agents.functions import FunctionAgent
from segue.agents.given import as_agent
from segue.core.contracts.agents import Agent, Tool, Tools, Usage, Work
from segue.core.messages import File, Text, ToolCall, ToolResult, plain_text
from segue.core.prompt.envelopes import Voices
from segue.core.transcripts import Role
from segue.core.values import SessionId
from segue.errors import Invalid
from segue.testing.agents import EchoAgent
from segue.testing.contracts import AgentContract, RecallContract, ToolContract
from segue.testing.contracts.agents import events_of, person, said, text_of, work


async def shout(text: str) -> str:
    return f"{text.upper()}!"


async def recall(work: Work) -> AsyncIterator[str | Usage]:
    before = [entry.text for entry in work.transcript if entry.author.role is Role.PERSON]
    for word in ["Before", " you", " said", f" {before}.", f" Now: {plain_text(work.asked[0].parts)}"]:
        yield word
    yield Usage("mine", output=4)


async def errand(text: str, work: Work) -> AsyncIterator[Any]:
    done = [part for part in work.journal if isinstance(part, ToolResult)]
    if "tool" in text and not done:
        yield ToolCall("c1", "kettle", {})
        yield ToolResult("c1", "hot")
    yield f"Done: {text}"


async def test_a_picture_alone_is_told_by_its_name() -> None:
    photo = replace(work("").asked[0], parts=(File("photo.jpg", "image/jpeg", "x"),))
    turn = replace(work(""), asked=(photo,))
    assert text_of(await events_of(as_agent(shout), turn)) == "(PHOTO.JPG, IMAGE/JPEG)!"
    bob = replace(photo, author=person("", "Bob").author)
    both = replace(turn, asked=(photo, bob), voices=Voices.SEVERAL)
    assert "BOB" in text_of(await events_of(as_agent(shout), both))
    assert text_of(await events_of(as_agent(shout), both)).count("PHOTO.JPG") == 2


class TestReply(AgentContract):
    @pytest.fixture
    def agent(self) -> Agent:
        return as_agent(shout)


class TestGenerator(RecallContract):
    @pytest.fixture
    def agent(self) -> Agent:
        return as_agent(recall)


class TestTools(ToolContract):
    @pytest.fixture
    def agent(self) -> Agent:
        return as_agent(errand)


class Kettle:
    offered = (Tool("kettle", "Boils water.", {"type": "object", "properties": {}}),)

    async def call(self, call: ToolCall) -> ToolResult:
        return ToolResult(call.id, f"{call.name} is on")


async def test_it_may_use_the_tools_of_the_gateway() -> None:
    async def tea(tools: Tools) -> str:
        result = await tools.call(ToolCall("c1", tools.offered[0].name, {}))
        return str(result.content)

    asked = Work(SessionId("s"), 1, "", (), (person("Tea!"),), tools=Kettle())
    assert text_of(await events_of(as_agent(tea), asked)) == "kettle is on"


async def test_words_are_plain_until_a_second_person_speaks() -> None:
    alone = replace(work("Tea!"), voices=Voices.SEVERAL)
    assert text_of(await events_of(as_agent(shout), alone)) == "TEA!!"
    before = said([], person("Tea!", "Ann"))
    both = replace(work("Milk!", transcript=before, by="Ben"), voices=Voices.SEVERAL)
    assert '"BEN"' in text_of(await events_of(as_agent(shout), both))
    again = replace(work("Sugar!", transcript=said(before, person("Milk!", "Ben"))), voices=Voices.SEVERAL)
    assert '"ANN"' in text_of(await events_of(as_agent(shout), again))


async def test_an_object_that_can_be_called_is_a_function_too() -> None:
    class Bot:
        async def __call__(self, text: str) -> str:
            return f"you said {text}"

    assert text_of(await events_of(as_agent(Bot()), work("tea"))) == "you said tea"


async def test_an_agent_stays_as_it_is() -> None:
    agent = EchoAgent()
    assert as_agent(agent) is agent


async def test_empty_pieces_are_left_out() -> None:
    async def pieces(work: Work) -> AsyncIterator[str]:
        for piece in ["", "a", "", "b"]:
            yield piece

    assert await events_of(as_agent(pieces), work("hello")) == [Text("a"), Text("b")]


async def test_garbage_is_an_error_that_names_the_function() -> None:
    async def garbage(work: Work) -> Any:
        return {"role": "assistant"}

    with pytest.raises(TypeError, match=r"garbage said dict, which is neither text nor an event"):
        await events_of(as_agent(garbage), work("hello"))


async def test_a_generator_that_is_left_is_closed() -> None:
    closed = []

    async def endless(work: Work) -> AsyncIterator[str]:
        try:
            while True:
                yield "more"
        finally:
            closed.append(True)

    events = FunctionAgent(endless).answer(work("hello"))
    async for _ in events:
        break
    await events.aclose()  # type: ignore[attr-defined]  # it is a generator
    assert closed == [True]


def plain(text: str) -> str:
    return text


async def bare(text) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001 -- what is tested
    return str(text)


async def twice(one: str, two: str) -> str:
    return one + two


async def number(count: int) -> str:
    return str(count)


async def by_place(text: str, /) -> str:
    return text


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (plain, "plain isn't async. Write it with `async def`."),
        (bare, 'nobody knows what "text" of bare is to get. Annotate each parameter with str, Work or Tools'),
        (twice, 'nobody knows what "one" of twice is to get'),
        (number, 'nobody knows what "count" of number is to get'),
        (by_place, '"text" of by_place can\'t be given by name'),
        (42, "int can't answer"),
        (EchoAgent, "EchoAgent can't answer"),
    ],
)
def test_what_cannot_answer_is_refused_when_it_is_given(given: Any, problem: str) -> None:
    with pytest.raises(Invalid) as caught:
        as_agent(given)
    assert problem in str(caught.value)


def test_no_agent_library_is_imported_for_it() -> None:
    code = """
import sys, segue, segue.agents.given, segue.agents.functions, segue.agents.models.keys, segue.runtime.gateway
heavy = {"pydantic", "pydantic_ai", "openai", "anthropic", "google.genai", "genai_prices"}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_model_imports_the_library_of_its_own_provider_alone() -> None:
    code = """
import sys
from segue.agents.models.keys import ModelKeys
ModelKeys("ollama:small").agent()
print(sorted({"openai", "anthropic", "google.genai"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['openai']\n"
