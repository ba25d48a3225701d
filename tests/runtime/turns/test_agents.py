"""Several agents in one gateway, and what each keeps of a session for itself."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from segue import AccountSettings, Gateway, Work
from segue.agents.given import Given
from segue.core.contracts.agents import AgentState, Event
from segue.core.messages import Text, plain_text
from segue.errors import AgentFailed
from segue.testing import Telegram
from tests.in_process import gateway_on


def served(
    path: Path, platform: Telegram, agent: Given | dict[str, Given], named: str = ""
) -> AbstractAsyncContextManager[Gateway]:
    return gateway_on(path, agent, platform, account=AccountSettings(public=True, agent=named))


async def counting(work: Work) -> AsyncIterator[Event]:
    """Count the answers of a session by a note alone."""
    note = work.state
    count = 0 if note is None or note.moved else note.value["count"]
    yield Text(f"{count + 1}{' after something was taken back' if note and note.moved else ''}")
    yield AgentState({"count": count + 1})


async def test_what_an_agent_keeps_comes_back_also_after_a_restart(tmp_path: Path) -> None:
    platform = Telegram()
    ann = platform.person("Ann")
    chat = platform.dm(ann)
    async with served(tmp_path, platform, counting):
        for n in "12":
            ann.says("next", chat)
            await chat.reads(n)
    async with served(tmp_path, platform, counting):
        ann.says("next", chat)
        await chat.reads("3")


async def test_an_agent_knows_when_the_tip_moved_under_it(tmp_path: Path) -> None:
    platform = Telegram()
    ann = platform.person("Ann")
    chat = platform.dm(ann)
    async with served(tmp_path, platform, counting):
        for n in "12":
            ann.says("next", chat)
            await chat.reads(n)
        ann.says("/undo", chat)
        await chat.reads("Took back the last exchange.")
        ann.says("next", chat)
        await chat.reads("1 after something was taken back")


async def test_in_a_branch_an_agent_finds_its_note_about_what_both_share_and_about_nothing_else(tmp_path: Path) -> None:
    platform = Telegram()
    ann = platform.person("Ann")
    chat = platform.dm(ann)

    async def noting(work: Work) -> AsyncIterator[Event]:
        kept = [note.value if note else None for note in (work.state, work.branched)]
        yield Text(f"{plain_text(work.asked[0].parts)}: {kept[0]} here, {kept[1]} before")
        yield AgentState(work.turn)

    async with served(tmp_path, platform, noting):
        for words, here, before in (
            ("one", None, None),
            ("/title Tea", "", ""),
            ("/branch", "", ""),
            ("two", None, 1),
            ("three", 1, None),
            ("/resume Tea #1", "", ""),
            ("four", 1, None),
            ("/undo", "", ""),
            ("/branch", "", ""),
            ("five", None, None),
        ):
            said = len(chat.replies)
            ann.says(words, chat)
            if words.startswith("/"):
                await chat.reads_some(said + 1)
            else:
                await chat.reads(f"{words}: {here} here, {before} before")


async def test_a_note_is_kept_with_the_answer_or_not_at_all(tmp_path: Path) -> None:
    platform = Telegram()
    ann = platform.person("Ann")
    chat = platform.dm(ann)
    tries: list[object] = []

    async def failing_once(work: Work) -> AsyncIterator[Event]:
        tries.append(work.state)
        yield AgentState({"try": len(tries)})
        if len(tries) == 1:
            raise ConnectionError("the model is away")
        yield Text(f"there after {len(tries)}")

    async with served(tmp_path, platform, failing_once):
        for n in (2, 3):
            ann.says("hello", chat)
            await chat.reads(f"there after {n}")
    values = [state.value if isinstance(state, AgentState) else None for state in tries]
    assert values == [None, None, {"try": 2}]


async def test_a_note_is_kept_with_the_last_error_too(tmp_path: Path) -> None:
    platform = Telegram()
    ann = platform.person("Ann")
    chat = platform.dm(ann)

    async def failing(work: Work) -> AsyncIterator[Event]:
        yield AgentState(work.turn)
        if work.state is None:
            raise AgentFailed("It broke.", "Mend it.", passes=False)
        yield Text(f"I know of {work.state.value}")

    async with served(tmp_path, platform, failing):
        ann.says("hello", chat)
        await chat.reads_some()
        ann.says("hello", chat)
        await chat.reads("I know of 1")


async def test_a_session_keeps_the_agent_that_it_began_with(tmp_path: Path) -> None:
    platform = Telegram()
    ann = platform.person("Ann")
    chat = platform.dm(ann)

    async def first(text: str) -> str:
        return f"first: {text}"

    async def second(text: str) -> str:
        return f"second: {text}"

    agents: dict[str, Given] = {"": first, "second": second}
    async with served(tmp_path, platform, agents, "second"):
        ann.says("hello", chat)
        await chat.reads("second: hello")
    async with served(tmp_path, platform, agents):
        ann.says("who are you?", chat)
        await chat.reads("second: who are you?")
        ann.says("/new", chat)
        ann.says("and now?", chat)
        await chat.reads("first: and now?")
    async with served(tmp_path, platform, first):
        ann.says("/resume 1", chat)
        ann.says("still there?", chat)
        await chat.reads("first: still there?")
