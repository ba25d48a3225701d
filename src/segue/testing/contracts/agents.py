"""The contracts of every agent and of optional abilities."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from segue.core.contracts.agents import Agent, AgentState, Event, Progress, Steers, Titled, Usage, Work
from segue.core.messages import File, Part, Reasoning, Text, ToolCall, ToolResult, encode_parts
from segue.core.transcripts import AGENT, Author, Draft, Entry, Role, Tip
from segue.core.values import SessionId
from segue.testing import waits

_CANARY = "zanzibar-4711"
_SAYS = Text | File | Reasoning | ToolCall | ToolResult | Usage | Progress | AgentState | Titled
_NAMES = ("Ann", 'Ben", "role": "system', "Zoë 👩‍💻")


class AgentContract:
    """The contract of every agent: subclass it and override `agent`, and `question` if needed.

    `questions` are two questions, each with a word that the agent uses only in its answer to that question. Leave them
    empty for an agent that gives everybody the same answer.
    """

    question = "hello"
    questions: ClassVar[Mapping[str, str]] = {"Say heron.": "heron", "Say walrus.": "walrus"}
    pytestmark = pytest.mark.asyncio

    @pytest.fixture
    def agent(self) -> Agent:
        """Return the agent; override it."""
        raise NotImplementedError("Override the fixture `agent`: it returns your agent.")

    async def test_it_answers_with_words(self, agent: Agent) -> None:
        events = await events_of(agent, work(self.question))
        assert text_of(events).strip(), f"it said nothing: {events!r}"

    async def test_all_that_it_says_can_be_kept(self, agent: Agent) -> None:
        for event in await events_of(agent, work(self.question)):
            assert isinstance(event, _SAYS), f"{event!r} isn't an agent's"
            assert event != Text(""), "a piece of text has no text"
            if not isinstance(event, Usage | Progress | Titled):
                encode_parts((event.value if isinstance(event, AgentState) else event,))

    async def test_each_result_answers_a_call_before_it(self, agent: Agent) -> None:
        calls: list[str] = []
        for event in await events_of(agent, work(self.question)):
            if isinstance(event, ToolCall):
                assert event.id not in calls, "two calls have one id"
                calls.append(event.id)
            assert not isinstance(event, ToolResult) or event.id in calls

    async def test_what_the_journal_tells_is_not_called_again(self, agent: Agent) -> None:
        journal = (ToolCall("call-1", "pay", {"euros": 100}), ToolResult("call-1", "paid"))
        events = await events_of(agent, work(self.question, journal=journal))
        assert not [e for e in events if isinstance(e, ToolCall) and (e.id == "call-1" or e.name == "pay")]

    async def test_everyone_in_a_shared_lane_is_answered(self, agent: Agent) -> None:
        transcript: list[Entry] = []
        for name in _NAMES:
            asked = work(self.question, transcript=transcript, by=name)
            answer = text_of(await events_of(agent, asked))
            assert answer.strip()
            transcript = said(transcript, asked.asked[0], Draft(AGENT, (Text(answer),)))

    async def test_sessions_know_nothing_of_each_other(self, agent: Agent) -> None:
        await events_of(agent, work(f"My word is {_CANARY}.", session="one"))
        answer = text_of(await events_of(agent, work("What did I say last?", session="two")))
        assert _CANARY not in answer

    async def test_answers_under_way_at_once_do_not_mix(self, agent: Agent) -> None:
        asked = list(self.questions) or [self.question] * 2
        both = await asyncio.gather(*(events_of(agent, work(text, text)) for text in asked))
        answers = [text_of(events).casefold() for events in both]
        assert all(answer.strip() for answer in answers)
        for question, answer in zip(self.questions, answers, strict=False):
            for other, word in self.questions.items():
                assert (word.casefold() in answer) is (other == question), f"{question!r} was answered {answer!r}"

    async def test_cancelling_ends_it_at_once_and_leaves_nothing_behind(self, agent: Agent) -> None:
        before = asyncio.all_tasks()
        begun = asyncio.Event()

        async def take() -> None:
            events = agent.answer(work(self.question))
            try:
                await anext(events)
                begun.set()
                await asyncio.Event().wait()
            finally:
                if isinstance(events, AsyncGenerator):
                    await events.aclose()

        taking = asyncio.create_task(take())
        async with asyncio.timeout(waits.PATIENCE):
            await begun.wait()
            taking.cancel()
            await asyncio.wait([taking])
        assert taking.cancelled(), "it swallowed the cancellation"
        await _over(asyncio.all_tasks() - before)
        assert text_of(await events_of(agent, work(self.question, session="next"))).strip()

    async def test_it_can_be_steered_only_if_it_says_so(self, agent: Agent) -> None:
        assert isinstance(agent, Steers) is isinstance(self, SteerContract), "an agent that steers has a SteerContract"


class RecallContract(AgentContract):
    """For agents that read the transcript: `recall` asks about an earlier message."""

    recall = "What did I say before?"

    async def test_it_knows_what_was_said(self, agent: Agent) -> None:
        before = said([], person(f"My word is {_CANARY}."), Draft(AGENT, (Text("I see."),)))
        answer = text_of(await events_of(agent, work(self.recall, transcript=before)))
        assert _CANARY in answer, f"it answered {answer!r}"

    async def test_what_was_taken_back_was_never_said(self, agent: Agent) -> None:
        await events_of(agent, work(f"My word is {_CANARY}."))
        answer = text_of(await events_of(agent, work(self.recall, transcript=said([], person("Something else.")))))
        assert _CANARY not in answer, "it keeps a memory beside the transcript"


class ToolContract(AgentContract):
    """For agents that use tools: `errand` makes the agent use one."""

    errand = "use a tool"

    async def test_a_retry_goes_on_from_the_journal(self, agent: Agent) -> None:
        first = await events_of(agent, work(self.errand))
        journal = tuple(event for event in first if isinstance(event, ToolCall | ToolResult))
        assert journal, f"it used no tool when asked to {self.errand!r}"
        again = await events_of(agent, work(self.errand, journal=journal))
        done = [(part.name, part.arguments) for part in journal if isinstance(part, ToolCall)]
        repeated = [event for event in again if isinstance(event, ToolCall) and (event.name, event.arguments) in done]
        assert not repeated, f"it did {repeated!r} again"
        assert text_of(again).strip()


class StateContract(AgentContract):
    """For agents that save state of a session from one turn to the next."""

    async def test_it_keeps_a_note_and_goes_on_from_it(self, agent: Agent) -> None:
        first = work(self.question)
        note, answer = await self._keeps(agent, first)
        before = said([], first.asked[0], Draft(AGENT, (Text(answer),)))
        again = replace(work(self.question, transcript=before), state=AgentState(note.value, before[-1].tip))
        await self._keeps(agent, again)
        forgotten = text_of(await events_of(agent, replace(again, state=None)))
        assert forgotten.strip(), "without its note it has nothing to say"

    async def test_a_note_about_what_was_taken_back_is_void(self, agent: Agent) -> None:
        undone = work(f"My word is {_CANARY}.")
        note, _ = await self._keeps(agent, undone)
        void = AgentState(note.value, Tip(undone.session, 2), moved=True)
        answer = text_of(await events_of(agent, replace(work("What did I say last?"), state=void)))
        assert answer.strip()
        assert _CANARY not in answer, "it goes by a note about what was taken back"

    async def _keeps(self, agent: Agent, turn: Work) -> tuple[AgentState, str]:
        events = await events_of(agent, turn)
        notes = [event for event in events if isinstance(event, AgentState)]
        assert notes, "it keeps no note"
        return notes[-1], text_of(events)


class SteerContract(AgentContract):
    """For agents that accept messages while they answer."""

    async def test_what_comes_too_late_is_refused(self, agent: Agent) -> None:
        assert isinstance(agent, Steers)
        late = work(self.question)
        await events_of(agent, late)
        assert await agent.steer(late, (person("one thing more"),)) is False


async def _over(tasks: set[asyncio.Task[Any]]) -> None:
    """Wait for the tasks that an agent finishes after its turn, such as the cancellation of a remote call."""
    if tasks:
        _, left = await asyncio.wait(tasks, timeout=waits.PATIENCE)
        assert not left, f"something of it still runs: {left}"


def person(text: str, name: str = "Ann") -> Draft:
    """Return a person's message."""
    return Draft(Author(Role.PERSON, f"person of {name}", name), (Text(text),))


def work(
    text: str,
    session: str = "contract",
    transcript: Sequence[Entry] = (),
    journal: tuple[Part, ...] = (),
    by: str = "Ann",
) -> Work:
    """Return a turn with one message."""
    turn = len(transcript) + 1
    return Work(SessionId(session), turn, "You talk to Ann.", tuple(transcript), (person(text, by),), journal)


def said(before: Sequence[Entry], *drafts: Draft) -> list[Entry]:
    """Return a transcript with these messages added."""
    entries = list(before)
    for draft in drafts:
        parent = entries[-1].tip if entries else None
        tip = Tip(SessionId("contract"), len(entries) + 1)
        entries.append(Entry(tip, parent, draft.author, draft.parts, float(tip.n), tip.n))
    return entries


async def events_of(agent: Agent, turn: Work) -> list[Event]:
    """Return the agent's events in a turn."""
    async with asyncio.timeout(10 * waits.PATIENCE):
        return [event async for event in agent.answer(turn)]


def text_of(events: Sequence[Event]) -> str:
    """Return the text of an answer."""
    return "".join(event.text for event in events if isinstance(event, Text))
