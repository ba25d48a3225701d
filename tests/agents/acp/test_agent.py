"""The agent for programs that speak ACP keeps what every agent keeps."""

import asyncio
import json
import weakref
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from segue.agents.acp.agent import AcpAgent
from segue.agents.acp.lines import ProcessLines
from segue.agents.acp.process import MOST_SUBAGENTS, Process, _Ears
from segue.agents.acp.turn import MOST_WAITING, AcpTurn
from segue.core.contracts.agents import AgentState, Participant
from segue.core.messages import File, Text
from segue.core.transcripts import AGENT, Draft, Entry, Tip
from segue.core.values import SessionId
from segue.errors import AgentFailed, Invalid
from segue.testing.contracts import RecallContract, StateContract, SteerContract, ToolContract
from segue.testing.contracts.agents import events_of, person, said, text_of, work
from segue.testing.waits import PATIENCE
from tests.agents.acp.keys import program
from tests.event_loop import calls_on_this_thread


class TestAcp(RecallContract, StateContract, SteerContract, ToolContract):
    recall = "all"
    errand = "tool"

    @pytest.fixture
    async def agent(self, tmp_path: Path) -> AsyncIterator[AcpAgent]:
        agent = AcpAgent(program(tmp_path))
        # What runs beside it belongs to its process, not to a turn.
        await agent._running()
        yield agent
        await agent.close()


class Files:
    """Files that can all be read, but one."""

    async def read(self, file: File) -> bytes:
        if file.where == "gone":
            raise Invalid("file", "it isn't kept here", "Send it again.")
        return file.name.encode()


async def test_files_are_sent_as_the_agent_takes_them_and_named_where_it_cant(tmp_path: Path) -> None:
    agent = AcpAgent(program(tmp_path))
    files = (
        File("cat.png", "image/png", "a", 7),
        File("notes.txt", "text/plain", "b", 9),
        File("talk.ogg", "audio/ogg", "c", 8),
        File("big.bin", "application/zip", "d", 11 * 1024 * 1024),
        File("old.png", "image/png", "gone", 7),
    )
    asked = replace(person("look"), parts=(Text("look"), *files))
    try:
        with calls_on_this_thread(b64encode) as calls:
            await events_of(agent, replace(work(""), asked=(asked,), files=Files()))
        assert calls == [], "it takes long for 10 MB"
    finally:
        await agent.close()
    [kept] = tmp_path.glob("*.json")  # noqa: ASYNC240 -- nothing else runs
    told = json.loads(kept.read_text())[0].splitlines()
    assert told.count("[image]") == 1
    assert told.count("[resource]") == 2, "text, and what it has no other form for"
    named = [json.loads(line) for line in told if line.startswith('{"file"')]
    assert [(one["file"], one["note"]) for one in named] == [
        ("big.bin", "it is too large to be sent to you"),
        ("old.png", "it can't be read any more"),
    ]


async def test_the_host_chooses_a_mode_and_others_are_told_what_there_is(tmp_path: Path) -> None:
    agent, log = AcpAgent(program(tmp_path)), tmp_path / "log"
    host = Participant("p", "Ann", host=True)
    try:
        told = text_of(await events_of(agent, work("/mode code")))
        assert "The mode is ask." in told
        assert "- code (Code)" in told
        assert "mode=" not in log.read_text()
        chosen = await events_of(agent, replace(work("/mode Code"), person=host))
        assert text_of(chosen) == "The mode is Code from here on."
        assert "There is no mode “fast”" in text_of(await events_of(agent, replace(work("/mode fast"), person=host)))
        assert log.read_text().count("mode=code") == 1
        note = next(event for event in reversed(chosen) if isinstance(event, AgentState))
        undone = replace(work("hello"), state=AgentState(note.value, Tip(SessionId("contract"), 2), moved=True))
        await events_of(agent, undone)
        assert log.read_text().count("mode=code") == 2, "chosen again in a new session"
    finally:
        await agent.close()


@pytest.mark.parametrize("more", [(), ("keeps",)], ids=["closes", "keeps"])
async def test_what_another_process_went_on_with_is_read_anew_or_told(tmp_path: Path, more: tuple[str, ...]) -> None:
    one, two = (AcpAgent(program(tmp_path, *more)) for _ in range(2))
    transcript, state = list[Entry](), None
    try:
        for n, agent in enumerate((one, two, one, two)):
            turn = replace(work(f"I am plum {n}", transcript=transcript), state=state)
            events = await events_of(agent, turn)
            assert text_of(events) == f"You said: I am plum {n}", "what is loaded is no news"
            transcript = said(transcript, *turn.asked, Draft(AGENT, (Text(text_of(events)),)))
            note = next(event for event in reversed(events) if isinstance(event, AgentState))
            state = AgentState(note.value, transcript[-1].tip)
        seen = text_of(await events_of(one, replace(work("all", transcript=transcript), state=state)))
    finally:
        await one.close()
        await two.close()
    assert [seen.count(f"You said: I am plum {n}") for n in range(4)] == [1] * 4
    log = (tmp_path / "log").read_text()
    assert (log.count("new "), log.count("load ")) == ((3, 2) if more else (1, 4))


async def test_a_line_of_nearly_16_mb_is_taken_and_one_of_more_ends_the_turn_alone(tmp_path: Path) -> None:
    agent, most = AcpAgent(program(tmp_path)), 16 * 1024 * 1024
    try:
        told = text_of(await events_of(agent, work(f"long {most - 1024}")))
        assert len(told) == most - 1024 + len("That is all.")
        assert agent.process is not None
        first = agent.process.pid
        with pytest.raises(AgentFailed, match="is gone: it wrote a line of more than 16 MB") as failed:
            await events_of(agent, work(f"long {most}"))
        assert failed.value.passes, "another attempt may go well"
        assert text_of(await events_of(agent, work("hello"))) == "You said: hello"
        assert agent.process.pid != first
    finally:
        await agent.close()


async def test_a_turn_that_is_prompted_anew_before_its_first_try_has_ended_ends_twice(tmp_path: Path) -> None:
    agent = AcpAgent(program(tmp_path))
    tries = [agent.answer(work("hello")) for _ in range(2)]
    try:
        for events in tries:
            await anext(events)
        for events in reversed(tries):
            await events.aclose()
    finally:
        await agent.close()


def told(session: str, update: dict[str, object]) -> dict[str, object]:
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}}


def reading(process: Process, *told: dict[str, object]) -> asyncio.Task[object]:
    """A process reads on in what its program wrote, until the end."""
    reader = asyncio.StreamReader()
    reader.feed_data(b"".join(json.dumps(line).encode() + b"\n" for line in told))
    reader.feed_eof()
    lines = ProcessLines(_Ears(weakref.ref(process)).heard, reader, cast("asyncio.StreamWriter", None))
    return asyncio.create_task(lines.receive())


async def turns_of_the_loop(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def chunk(n: int) -> dict[str, object]:
    return told("s", {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": f"{n} "}})


async def test_no_more_is_read_while_a_turn_cannot_take_what_was_told() -> None:
    process, turn = Process("program"), AcpTurn(work(""), "model", 0.0)
    process.session("s").begin(turn)
    reads = reading(process, *map(chunk, range(2000)))
    reads.add_done_callback(lambda _: turn.over())
    await turns_of_the_loop(10_000)
    assert turn._updates.qsize() <= MOST_WAITING
    said = [event.text async for event in turn.events() if isinstance(event, Text)]
    assert said == [f"{n} " for n in range(2000)], "all of it comes, in order"


async def test_what_is_told_to_a_turn_that_nobody_follows_any_more_holds_up_no_other() -> None:
    process, turn = Process("program"), AcpTurn(work(""), "model", 0.0)
    process.session("s").begin(turn)
    reads = reading(process, *map(chunk, range(2000)))
    await turns_of_the_loop(10_000)
    turn.leave()
    async with asyncio.timeout(PATIENCE):
        assert await reads is None, "it came to the end"
    assert turn._updates.qsize() <= MOST_WAITING


async def test_a_process_remembers_only_so_many_sub_agents_and_those_of_turns_that_run() -> None:
    process, turn = Process("program"), AcpTurn(work(""), "model", 0.0)
    for n in range(2 * MOST_SUBAGENTS):
        process.heard(told("over", {"sessionUpdate": "subagent_update", "sessionId": f"old-{n}"})["params"])
    process.session("s").begin(turn)
    for n in range(MOST_SUBAGENTS // 2):
        process.heard(told("s", {"sessionUpdate": "subagent_update", "sessionId": f"new-{n}"})["params"])
    assert len(process._above) <= MOST_SUBAGENTS
    assert all(process.asker(f"new-{n}") == (process.sessions["s"], f"new-{n}") for n in range(MOST_SUBAGENTS // 2))
