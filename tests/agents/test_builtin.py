"""The built-in agent: it answers from the transcript, and every request in its docstring does what it says."""

import asyncio
import re

import pytest
from msgspec.structs import replace

from segue.agents.builtin import agent as builtin
from segue.agents.builtin.agent import PAUSE, Builtin
from segue.core.contracts.agents import AgentState, Event, Usage, Work
from segue.core.messages import Summary, Text, ToolCall, ToolResult
from segue.core.transcripts import AGENT, GATEWAY, Author, Draft, Entry, Role, Tip
from segue.core.values import SessionId
from segue.testing.contracts import RecallContract, StateContract, SteerContract, ToolContract
from segue.testing.contracts.agents import events_of, person, said, text_of, work

REPLY = Draft(AGENT, (Text("I see."),))


class TestContracts(RecallContract, ToolContract, StateContract, SteerContract):
    recall = "what did I say before?"
    errand = "add 2 and 3"

    @pytest.fixture
    def agent(self) -> Builtin:
        return Builtin()


async def ask(text: str, *before: Draft, by: str = "Ann") -> str:
    return text_of(await events_of(Builtin(), work(text, transcript=said([], *before), by=by)))


async def test_it_says_at_once_that_it_is_no_model() -> None:
    assert await ask("Where is my train?") == (
        "You said “Where is my train?”\n\nI'm Segue's built-in agent: no model, no network, only a memory of this "
        "conversation. Say “help” to see what you can try."
    )


async def test_it_introduces_itself_once() -> None:
    again = await ask("And my bus?", person("Where is my train?"), REPLY)
    assert again == "You said “And my bus?” Before that you said “Where is my train?”"


@pytest.mark.parametrize("hello", ["hello", "Hi!", "Good morning", "hey there"])
async def test_it_greets_by_name(hello: str) -> None:
    assert (await ask(hello)).startswith("Hello, Ann! I'm Segue's built-in agent")


async def test_everything_that_its_help_proposes_works() -> None:
    proposed = re.findall(r"^- (.+)$", await ask("help"), re.MULTILINE)
    assert len(proposed) == 7
    for request in proposed:
        answer = text_of(await events_of(Builtin(sleep=no_time), work(request)))
        assert not answer.startswith("You said"), f"{request!r} is not understood"


async def no_time(_: float) -> None:
    """Time passes in no time."""


CONVERSATION = (person("The sky is green."), REPLY, person("No, it is blue."), REPLY)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("what did I say first?", "You first said “The sky is green.”"),
        ("What did I say last?", "You last said “No, it is blue.”"),
        ("How many messages do you remember?", "I remember 4 messages: 2 of yours and 2 of mine."),
        ("where are we?", "This is what I was told:\n\nYou talk to Ann."),
        ("what do you remember?", "Nothing in particular yet. Say “remember” and something after it."),
        ("say  two  spaces", " two  spaces"),
        ("count to 3", "1, 2, 3."),
        ("add 20 and 22", "20 and 22 make 42."),
    ],
)
async def test_it_answers_from_the_transcript(asked: str, answer: str) -> None:
    assert await ask(asked, *CONVERSATION) == answer


async def test_with_nothing_said_there_is_nothing_to_remember() -> None:
    assert await ask("how many messages do you remember?") == "I remember nothing from before this message."
    assert await ask("what did I say first?") == "I remember nothing that you said before this."


async def test_it_remembers_what_it_is_told_to() -> None:
    told = (person("Remember that the tea is in the blue tin."), REPLY, person("remember Ben's birthday"), REPLY)
    assert await ask("remember that the tea is in the blue tin") == "I'll remember that: the tea is in the blue tin"
    assert await ask("What do you remember?", *told) == (
        "You asked me to remember:\n\n- the tea is in the blue tin\n- Ben's birthday"
    )


async def test_where_several_people_talk_it_knows_who_spoke() -> None:
    talk = (person("I like tea.", "Ann"), REPLY, person("remember coffee", "Ben"), REPLY)
    assert await ask("what did I say first?", *talk, by="Ann") == "Ann, you first said “I like tea.”"
    assert await ask("how many", *talk) == "I remember 4 messages: 1 from Ann, 1 from Ben and 2 of mine."
    assert await ask("what do you remember?", *talk) == "You asked me to remember:\n\n- coffee (Ben)"
    assert await ask("Hm.", *talk, by="Cleo") == "Cleo, you said “Hm.” That is your first message here."


async def test_two_people_of_one_name_are_two() -> None:
    other = Draft(Author(Role.PERSON, "another person", "Ann"), (Text("I am the other Ann."),))
    assert "nothing that you said" in await ask("what did I say first?", other)


async def test_what_a_summary_stands_for_is_not_counted() -> None:
    summary = Draft(GATEWAY, (Summary("They spoke of tea.", "contract", 2),))
    assert await ask("how many", summary, person("And now?"), REPLY) == (
        "I remember 2 messages: 1 of yours and 1 of mine, after a summary of what came before."
    )


async def test_what_a_fork_inherited_counts() -> None:
    parent = [
        Entry(Tip(SessionId("parent"), 1), None, person("In the old place.").author, (Text("In the old place."),), 1.0),
        Entry(Tip(SessionId("parent"), 2), Tip(SessionId("parent"), 1), AGENT, (Text("Yes."),), 2.0),
    ]
    answer = text_of(await events_of(Builtin(), work("what did I say first?", session="child", transcript=parent)))
    assert answer == "You first said “In the old place.”"


async def test_after_a_handoff_it_speaks_first() -> None:
    opening = Work(
        SessionId("s"), 3, "", tuple(said([], *CONVERSATION)), (Draft(GATEWAY, (Text("You are on Slack now."),)),)
    )
    assert text_of(await events_of(Builtin(), opening)) == (
        "Here I am. I remember 4 messages: 2 of yours and 2 of mine. The last of it was “No, it is blue.”"
    )


async def test_what_one_person_had_waiting_is_answered_one_by_one() -> None:
    both = Work(SessionId("s"), 1, "", (), (person("Tea?"), person("Or milk?"), person("what did I say last?")))
    answer = text_of(await events_of(Builtin(), both))
    assert answer.count("I'm Segue's built-in agent") == 1
    assert answer.endswith("\n\nYou said “Or milk?” Before that you said “Tea?”\n\nYou last said “Or milk?”")


async def test_long_words_are_shortened() -> None:
    assert await ask("what did I say last?", person("tea " * 100), REPLY) == f"You last said “{'tea ' * 19}tea…”"


async def test_it_streams_word_by_word_and_loses_nothing() -> None:
    pieces = [e.text for e in await events_of(Builtin(), work("say one  two\n\nthree")) if isinstance(e, Text)]
    assert pieces == ["one", "  two", "\n\nthree"]


async def test_counting_slowly_takes_its_time() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    events = await events_of(Builtin(sleep), work("Count to 20 slowly!"))
    assert text_of(events) == ", ".join(str(n) for n in range(1, 21)) + "."
    assert waited == [PAUSE] * 19


async def test_a_tool_is_called_once_even_if_the_turn_is_tried_again() -> None:
    first = await events_of(Builtin(), work("add 2 and 3"))
    calls = [event for event in first if isinstance(event, ToolCall | ToolResult)]
    assert calls == [ToolCall("add-1-2-3", "add", {"one": 2, "two": 3}), ToolResult("add-1-2-3", 5)]
    # What the journal says happened counts, even if it were another sum.
    journal = (calls[0], ToolResult("add-1-2-3", 6))
    again = await events_of(Builtin(), work("add 2 and 3", journal=journal))
    assert not [event for event in again if isinstance(event, ToolCall | ToolResult)]
    assert text_of(again) == "2 and 3 make 6."


async def test_what_is_said_while_it_counts_is_answered_at_the_end() -> None:
    counting = asyncio.Event()
    go_on = asyncio.Event()

    async def sleep(_: float) -> None:
        counting.set()
        await go_on.wait()

    agent, turn = Builtin(sleep), work("count to 2 slowly")
    answering: asyncio.Task[list[Event]] = asyncio.create_task(events_of(agent, turn))
    await counting.wait()
    assert await agent.steer(turn, (person("say stop"),))
    go_on.set()
    assert text_of(await answering) == "1, 2.\n\nstop"
    assert not await agent.steer(turn, (person("too late"),))


async def test_it_counts_words_and_costs_nothing() -> None:
    before = said([], person("two words"))
    events = await events_of(Builtin(), work("say one two three", transcript=before))
    assert events[-2:] == [Usage("builtin", input=6, output=3, cost=0.0), AgentState({"words": 9})]
    # What was counted isn't counted again, unless it was taken back.
    known = replace(work("say so", transcript=before), state=AgentState({"words": 100}, before[-1].tip))
    assert Usage("builtin", input=102, output=1, cost=0.0) in await events_of(Builtin(), known)
    void = replace(known, state=AgentState({"words": 100}, before[-1].tip, moved=True))
    assert Usage("builtin", input=4, output=1, cost=0.0) in await events_of(Builtin(), void)


async def test_it_always_answers_the_same() -> None:
    turn = work("how many", transcript=said([], *CONVERSATION))
    assert await events_of(Builtin(), turn) == await events_of(Builtin(), turn)


def test_every_request_of_its_docstring_is_tested_here() -> None:
    documented = re.findall(r"^    (\w+)", builtin.__doc__ or "", re.MULTILINE)
    assert set(documented) == {"hello", "what", "how", "remember", "where", "say", "add", "count"}


async def test_what_it_was_told_to_remember_outlasts_a_summary() -> None:
    words = ["hello", 'remember the "tea" is\nin the blue tin', "how are you?", "fine"]
    before = said([], *(draft for text in words for draft in (person(text), REPLY)))
    text = (await Builtin().summary(work("unused", transcript=before), "")).text
    assert "how are you" not in text
    summary = Draft(GATEWAY, (Summary(text, "contract", len(before)),))
    assert 'the "tea" is' in await ask("what do you remember?", summary)
    assert await ask("what did I say first?", summary) == await ask("what did I say first?", person("hello"))
    assert "in the blue tin (Ann)" in await ask("what do you remember?", summary, by="Bob")
