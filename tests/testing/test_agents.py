"""The scripted agent does exactly what a test tells it, and keeps what it was given."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator

import pytest
from msgspec.structs import replace

from segue.core.contracts.agents import Steers, Tool, Usage
from segue.core.messages import Reasoning, Text, ToolCall, ToolResult
from segue.testing import waits
from segue.testing.agents import Doom, EchoAgent, Pause, ScriptedAgent, Slowly, SteeredAgent, Uses, pieces, said
from segue.testing.contracts import AgentContract, SteerContract, ToolContract
from segue.testing.contracts.agents import events_of, person, text_of, work
from segue.testing.waits import NeverCame


def errand() -> Uses:
    return Uses("call-7", "look", lambda: "a tin")


class TestScripted(ToolContract):
    @pytest.fixture
    def agent(self) -> ScriptedAgent:
        return ScriptedAgent(otherwise=lambda work: ["Hel", errand(), f"lo. {said(work)}"])


class TestSteered(SteerContract):
    @pytest.fixture
    def agent(self) -> SteeredAgent:
        return SteeredAgent(otherwise=lambda work: [said(work)])


class TestEcho(AgentContract):
    @pytest.fixture
    def agent(self) -> EchoAgent:
        return EchoAgent()


async def test_it_follows_its_scripts_one_a_try() -> None:
    agent = ScriptedAgent("whole", ["piece ", "by piece"])
    agent.will(Reasoning("p", "hm"), "thought", Usage("m", 1, 2))
    assert await events_of(agent, work("1")) == [Text("whole")]
    assert await events_of(agent, work("2")) == [Text("piece "), Text("by piece")]
    assert await events_of(agent, work("3")) == [Reasoning("p", "hm"), Text("thought"), Usage("m", 1, 2)]
    assert [turn.asked for turn in agent.works] == [(person("1"),), (person("2"),), (person("3"),)]


async def test_a_try_without_a_script_is_the_test_s_mistake() -> None:
    with pytest.raises(AssertionError, match="try 1 has no script; asked was 'what now'"):
        await events_of(ScriptedAgent(), work("what now"))


async def test_it_can_answer_by_what_it_is_asked() -> None:
    agent = ScriptedAgent("first", otherwise=lambda turn: [f"turn {turn.turn}"])
    assert text_of(await events_of(agent, work("x"))) == "first"
    assert text_of(await events_of(agent, work("x"))) == "turn 1"


async def test_the_test_says_when_it_goes_on() -> None:
    pause = Pause()
    agent = ScriptedAgent(["Once", pause, " upon"])
    events = agent.answer(work("a story"))
    assert await anext(events) == Text("Once")
    going = asyncio.ensure_future(anext(events))
    await pause.reached()
    assert not going.done()
    assert len(agent.running) == 1
    idle = asyncio.create_task(agent.idle())
    pause.over()
    assert await going == Text(" upon")
    assert not idle.done()
    assert [event async for event in events] == []
    await idle


async def test_it_fails_in_the_middle() -> None:
    agent = ScriptedAgent(["half", OSError("the line broke")])
    events = agent.answer(work("x"))
    assert await anext(events) == Text("half")
    with pytest.raises(OSError, match="the line broke"):
        await anext(events)
    assert not agent.running


async def test_it_takes_its_time() -> None:
    answering = asyncio.create_task(events_of(ScriptedAgent([Slowly(0.01), "done"]), work("x")))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not answering.done()
    assert await answering == [Text("done")]


async def test_it_hangs_until_it_is_closed() -> None:
    agent = ScriptedAgent(["begun", Doom.HANGS])
    events = agent.answer(work("x"))
    await anext(events)
    hanging = asyncio.ensure_future(anext(events))
    await agent.asked()
    assert not hanging.done()
    hanging.cancel()
    await asyncio.wait([hanging])
    assert isinstance(events, AsyncGenerator)
    await events.aclose()
    assert not agent.running


def test_it_dies_with_its_whole_process() -> None:
    program = (
        "import asyncio\n"
        "from segue.testing.agents import Doom, ScriptedAgent\n"
        "from segue.testing.contracts.agents import events_of, work\n"
        "asyncio.run(events_of(ScriptedAgent([Doom.DIES]), work('x')))\n"
    )
    died = subprocess.run([sys.executable, "-c", program], env=dict(os.environ), check=False, capture_output=True)
    assert (died.returncode, died.stderr) == (137, b"")


async def test_a_tool_really_does_something_and_only_once() -> None:
    done: list[str] = []
    paying = Uses("call-1", "pay", lambda: done.append("paid"), {"euros": 1})
    agent = ScriptedAgent([paying, "done"], [paying, "done"])
    first = await events_of(agent, work("pay"))
    assert first == [ToolCall("call-1", "pay", {"euros": 1}), ToolResult("call-1", None), Text("done")]
    journal = tuple(event for event in first if isinstance(event, ToolCall | ToolResult))
    assert await events_of(agent, work("pay", journal=journal)) == [Text("done")]
    assert done == ["paid"]


async def test_a_test_waits_for_its_works(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = ScriptedAgent("one", "two")
    second = asyncio.create_task(agent.asked(2))
    await events_of(agent, work("first"))
    assert not second.done()
    await events_of(agent, work("second"))
    assert (await second).asked == (person("second"),)
    monkeypatch.setattr(waits, "PATIENCE", 0.01)
    with pytest.raises(NeverCame, match="asked 2 times, not 3"):
        await agent.asked(3)


async def test_only_the_steered_one_can_be_steered() -> None:
    pause, turn = Pause(), work("count")
    agent = SteeredAgent(["one", pause, "two"], ["three"])
    assert not isinstance(ScriptedAgent(), Steers)
    answering = asyncio.create_task(events_of(agent, turn))
    await pause.reached()
    assert await agent.steer(turn, (person("faster"),))
    assert await agent.told() == (person("faster"),)
    assert not await agent.steer(work("another turn"), (person("faster"),))
    agent.takes_more = False
    assert not await agent.steer(turn, (person("even faster"),))
    pause.over()
    await answering
    assert agent.steered == [(person("faster"),)]


@pytest.mark.parametrize("text", ["", "one", "one two", " two  spaces ", "a\nb c\n\nd"])
async def test_an_echo_loses_nothing(text: str) -> None:
    assert "".join(pieces(text)) == text
    assert all(pieces(text))
    assert text_of(await events_of(EchoAgent(), work(text))) == text


class Kettle:
    """The tools of a gateway that can do one thing."""

    offered = (Tool("boil", "Boil water.", {"type": "object", "properties": {}}),)

    async def call(self, call: ToolCall) -> ToolResult:
        return ToolResult(call.id, f"boiled {call.arguments}")


async def test_a_tool_that_the_gateway_offers_is_the_gateways() -> None:
    asked = replace(work("tea"), tools=Kettle())
    agent = ScriptedAgent(
        [Uses("1", "boil", lambda: "pretended", arguments="water"), Uses("2", "pour", lambda: "poured")]
    )
    results = [event for event in await events_of(agent, asked) if isinstance(event, ToolResult)]
    assert results == [ToolResult("1", "boiled water"), ToolResult("2", "poured")]


async def test_a_tool_that_nobody_has_is_a_failed_result() -> None:
    [_, result] = await events_of(ScriptedAgent([Uses("1", "boil")]), work("tea"))
    assert isinstance(result, ToolResult)
    assert result.failed
