"""An ACP agent as the agent of sessions: what it sees is what we keep, and no trouble of its process ends a session."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from segue.agents.acp.agent import AcpAgent
from segue.changes.sessions import trees
from segue.core.messages import File, Reasoning, ToolCall, ToolResult
from segue.core.settings import Busy, GatewaySettings
from segue.core.transcripts import Entry, Role
from segue.core.values import SessionId
from segue.testing import PERSONAS, Matrix, Signal
from segue.testing.waits import PATIENCE
from tests.agents.acp.keys import program
from tests.drills.gateways import Mind
from tests.runtime.house import house
from tests.stories.conftest import Stage
from tests.stories.square import Square, both

told_of_deletions = pytest.mark.parametrize("square", [(Signal, "sqlite"), (Matrix, "postgres")], indirect=True)
one = pytest.mark.parametrize("square", [pytest.param((PERSONAS[0], "sqlite"), id="sqlite")], indirect=True)


class Told:
    """The program's own account of what it was asked."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "log"

    @property
    def lines(self) -> list[str]:
        return self._file.read_text().splitlines() if self._file.exists() else []

    def count(self, beginning: str) -> int:
        return sum(line.startswith(beginning) for line in self.lines)


def made(folder: Path, *more: str, **keys: object) -> AcpAgent:
    """The agent of a program that keeps its sessions in a folder."""
    return AcpAgent(program(folder, *more, **keys))


@asynccontextmanager
async def talking(square: Square, agent: AcpAgent, settings: GatewaySettings | None = None) -> AsyncIterator[None]:
    """The gateway runs with an agent, whose process ends with it."""
    square.agent = agent
    try:
        async with square.open(settings or GatewaySettings(attempts=2)):
            yield
    finally:
        await agent.close()


async def until(so: Callable[[], bool]) -> None:
    """Wait for a fact that another process makes."""
    async with asyncio.timeout(PATIENCE):
        while not so():  # noqa: ASYNC110 -- nothing here could set an event
            await asyncio.sleep(0.02)


async def titled(square: Square, title: str) -> None:
    """The session goes by a title; it is given after the answer."""
    async with asyncio.timeout(PATIENCE):
        while (await square.session()).title != title:  # noqa: ASYNC110 -- nothing tells
            await asyncio.sleep(0.02)


async def path(square: Square) -> Sequence[Entry]:
    """The entries of Ann's session."""
    return await square.store.path((await square.session()).id)


async def children(square: Square) -> list[SessionId]:
    """The sessions beneath Ann's, in the order of the tree."""
    session = await square.session()
    return [branch.id for branch in await square.store.driver.read(trees.tree, session) if branch.id != session.id]


async def view(square: Square, folder: Path) -> str:
    """All that the agent knows of the session, what it is asked now included."""
    (folder / "view").unlink(missing_ok=True)
    assert await square.says("recall") == "I looked"
    return (folder / "view").read_text()


@both
async def test_what_the_agent_sees_is_the_transcript_after_undo_branch_and_restarts(
    square: Square, tmp_path: Path
) -> None:
    told = Told(tmp_path)
    async with talking(square, made(tmp_path)):
        assert await square.says("one apple") == "You said: one apple"
        assert await square.says("two pears") == "You said: two pears"
        assert told.count("new") == 1
        await square.says("/undo")
        seen = await view(square, tmp_path)
        assert "one apple" in seen
        assert "two pears" not in seen
        assert told.count("new") == 2
        await square.says("/branch")
        await square.says("three plums")
        seen = await view(square, tmp_path)
        assert told.count("new") == 3
        assert "one apple" in seen
        assert seen.count("You said: three plums") == 1
    async with talking(square, made(tmp_path)):
        seen = await view(square, tmp_path)
        assert told.count("load") == 1, "its session was loaded after a restart"
        assert "one apple" in seen
        assert seen.count("You said: three plums") == 1
        assert "what was said before" not in str(square.dm.replies), "history that is loaded is not said again"
    async with talking(square, made(tmp_path, "forgetful")):
        seen = await view(square, tmp_path)
        assert told.count("new") == 4, "what can't be loaded is told anew"
        assert seen.count("three plums") >= 1


@both
async def test_a_branch_is_forked_where_the_agent_can_and_both_go_on_apart(square: Square, tmp_path: Path) -> None:
    told = Told(tmp_path)
    async with talking(square, made(tmp_path, "forks")):
        await square.says("one apple")
        await square.says("/model large")
        await square.says("/title Fruit")
        await square.says("/branch")
        seen = await view(square, tmp_path)
        assert (told.count("new"), told.count("fork")) == (1, 1)
        assert seen.count("The conversation so far") == 1, "it knows it"
        assert seen.count("You said: one apple") == 1
        assert told.count("which=large") == 2, "what was chosen holds in the branch"
        await square.says("two pears")
        await square.says("/resume Fruit #1")
        assert "two pears" not in await view(square, tmp_path)
        await square.says("three plums")
        await square.says("/undo")
        await square.says("/branch")
        seen = await view(square, tmp_path)
        assert "three plums" not in seen, "what was taken back isn't in a branch"
        assert "one apple" in seen
        assert (told.count("new"), told.count("fork")) == (2, 1)


@one
async def test_of_many_sessions_the_longest_unused_is_closed_and_loaded_again(square: Square, tmp_path: Path) -> None:
    told = Told(tmp_path)
    people = [square.platform.person(f"P{n}") for n in range(4)]
    chats = [square.platform.dm(person) for person in people]
    agent = made(tmp_path, open=2)
    async with talking(square, agent):
        for n, (person, chat) in enumerate(zip(people, chats, strict=True)):
            await square.says(f"I am P{n}", who=person, where=chat)
        await until(lambda: told.count("close") == 2)
        await square.says("recall", who=people[0], where=chats[0])
        assert told.count("load") == 1
        seen = (tmp_path / "view").read_text()
        assert "You said: I am P0" in seen
        assert seen.count("The conversation so far") == 1
        await until(lambda: told.count("close") == 3)
        process = agent.process
        assert process is not None
        await until(lambda: len(process.sessions) == 2)


@one
async def test_what_is_told_after_a_turn_comes_with_the_next(square: Square, tmp_path: Path) -> None:
    told = Told(tmp_path)
    async with talking(square, made(tmp_path)):
        assert await square.says("later") == "I will look."
        await until(lambda: told.count("told later") == 1)
        assert await square.says("and?") == "Now I know.\n\nYou said: and?"
        assert await square.says("thanks") == "You said: thanks"


@both
async def test_sub_agents_are_child_sessions_and_ask_the_person(
    square: Square, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = Told(tmp_path)
    async with talking(square, made(tmp_path)):
        assert "rm draft.txt" in await square.says("delegate")
        assert await square.says("yes", answers=2) == "They found a cat."
        tree = await square.says("/tree")
        assert "b) “Looker”" in tree
        assert "c) “Writer”" in tree
        looker, writer = await children(square)
        [asked, found] = await square.store.path(looker)
        assert (asked.text, found.text) == ("Look around", "I look. \n\nThere is a cat.")
        assert [part.name for part in found.parts if isinstance(part, ToolCall)] == ["subagent"], "it had one itself"
        [task, done] = await square.store.path(writer)
        assert (task.text, done.text) == ("Write it down", "Written, draft.txt is gone.")
        assert [part.id for part in done.parts if isinstance(part, ToolResult)] == ["w1"]
        parts = [part for entry in await path(square) for part in entry.parts]
        [job] = [part for part in parts if isinstance(part, ToolCall)]
        assert (job.name, job.arguments) == ("subagent", {"title": "Looker", "task": "Look around"})
        [result] = [part for part in parts if isinstance(part, ToolResult)]
        assert result.content == "I look. There is a cat."
        assert "Looker" not in await square.says("/resume"), "they are in the tree alone"
        square.ann.says("delegate wait", square.dm)
        await until(lambda: told.count("prompt delegate wait") == 1)
        await square.says("/stop")
        [stopped] = [id for id in await children(square) if id not in (looker, writer)]
        assert [entry.text for entry in await square.store.path(stopped)] == ["Look around", "I look. "]
        await square.says("/tree b")
        assert "There is a cat." in await view(square, tmp_path), "one can go on with it"
    assert "a secret" not in caplog.text, "what this version doesn't know isn't logged"


@told_of_deletions
async def test_what_failed_and_was_taken_back_or_was_deleted_is_known_to_the_agent_no_more(
    square: Square, tmp_path: Path
) -> None:
    told = Told(tmp_path)
    async with talking(square, made(tmp_path), GatewaySettings(attempts=1)):
        await square.says("one apple")
        assert "/retry" in await square.says("crash")
        assert "crash" in await view(square, tmp_path), "what failed stays, as long as nobody takes it back"
        assert told.count("new") == 1
        assert "/retry" in await square.says("crash plum")
        await square.says("/undo")
        seen = await view(square, tmp_path)
        assert "plum" not in seen
        assert "one apple" in seen
        assert told.count("new") == 2
        await square.says("/branch")
        await square.says("two pears")
        square.passes(1)
        square.ann.deletes(square.message("one apple"))
        await square.platform.settles()
        seen = await view(square, tmp_path)
        assert "one apple" not in seen.replace("You said: one apple", ""), "also in a branch that shares it"
        assert "two pears" in seen


@one
async def test_thoughts_plans_tools_files_and_cost_come_through(square: Square, tmp_path: Path) -> None:
    async with talking(square, made(tmp_path)):
        assert await square.says("tool") == "Done."
        await titled(square, "Notes and a file")
        await square.says("/title Mine")
        assert await square.says("tool") == "Done."
        assert (await square.session()).title == "Mine", "a person's own title stays"
        await square.says("/undo")
        parts = [part for entry in await path(square) for part in entry.parts]
        assert Reasoning("acp", {"text": "I had better look."}) in parts
        [call] = [part for part in parts if isinstance(part, ToolCall)]
        assert (call.name, call.arguments["locations"]) == ("edit", ["/there/notes.txt:3"])
        [result] = [part for part in parts if isinstance(part, ToolResult)]
        assert "-old line\n+new line" in result.content
        assert "written" in result.content
        assert "40 tokens in (20 read from the cache), 20 out (10 of it reasoning)" in await square.says("/usage")
        await square.says("picture", answers=2)
        [picture] = [part for entry in await path(square) for part in entry.parts if isinstance(part, File)]
        assert (await square.files.read(picture)).startswith(b"\x89PNG")
        assert await square.says("log and go on") == "and go on", "a stray line does no harm"
        assert await square.says("/shout hello you") == "HELLO YOU"
        assert "small" in await square.says("/model")
        assert await square.says("/model Large") == "The model is Large from here on."
        await square.says("/undo 1")
        await square.says("hello")
        assert Told(tmp_path).count("which=large") == 2, "chosen again in a new session"


@both
async def test_a_permission_is_asked_of_the_person_and_once_for_the_session(square: Square, tmp_path: Path) -> None:
    async with talking(square, made(tmp_path)):
        asked = await square.says("remove old.txt")
        assert asked.startswith("May I do this? Remove a file\n")
        assert "rm old.txt" in asked
        assert await square.says("yes", answers=2) == "old.txt is gone"
        assert "rm old.txt" in await square.says("remove old.txt")
        assert await square.says("no", answers=2) == "old.txt stays (n)"
        await square.says("remove new.txt")
        assert await square.says("for this session", answers=2) == "new.txt is gone"
        assert await square.says("remove new.txt") == "new.txt is gone"
        assert "rm old.txt" in await square.says("remove old.txt"), "what was allowed is that one thing"
        await square.says("no", answers=2)
        assert "Colour" in await square.says("form")
        assert "How many" in await square.says("blue", answers=2)
        assert "How many" in await square.says("lots", answers=2)
        assert "“skip” leaves it out" in await square.says("3", answers=2)
        assert await square.says("skip", answers=2) == 'accept {"colour": "blue", "count": 3}'


@one
async def test_a_stopped_turn_is_cancelled_and_its_session_goes_on(square: Square, tmp_path: Path) -> None:
    told = Told(tmp_path)
    async with talking(square, made(tmp_path)):
        square.ann.says("wait", square.dm)
        await until(lambda: told.count("prompt wait") == 1)
        await square.says("/stop")
        await until(lambda: told.count("cancelled") == 1)
        assert await square.says("hello") == "You said: hello"
        assert told.count("new") <= 2
        asked = await square.says("remove old.txt")
        assert "rm old.txt" in asked
        await square.says("/stop")
        await until(lambda: told.count("permission old.txt cancelled") == 1)


@one
async def test_what_is_said_meanwhile_goes_into_the_running_prompt_or_ends_it(square: Square, tmp_path: Path) -> None:
    told = Told(tmp_path)
    async with talking(square, made(tmp_path), GatewaySettings(attempts=2, busy=Busy.STEER)):
        square.ann.says("listen 2", square.dm)
        await until(lambda: told.count("listening") == 1)
        square.ann.says("one thing more", square.dm)
        await until(lambda: told.count("steered one thing more") == 1)
        assert await square.says("and another") == "You added: one thing more, and another"
        said = [entry.text for entry in await path(square) if entry.author.role is Role.PERSON]
        assert said == ["listen 2", "one thing more", "and another"]
        assert (await view(square, tmp_path)).count("one thing more") == 2, "once said, and once in its answer"
        square.ann.says("wait", square.dm)
        await until(lambda: told.count("prompt wait") == 1)
        square.ann.says("what it doesn't take", square.dm)
        await square.says("/stop")
        await until(lambda: "You said: what it doesn't take" in square.dm.replies)
    async with talking(square, made(tmp_path), GatewaySettings(attempts=2, busy=Busy.INTERRUPT)):
        square.ann.says("wait", square.dm)
        await until(lambda: told.count("prompt wait") == 2)
        assert await square.says("no, this", answers=2) == "You said: no, this"
        assert told.count("cancelled") == 2


@pytest.mark.parametrize("trouble", ["crash", "garbage", "garbage long"])
@one
async def test_a_process_that_breaks_is_started_again(square: Square, tmp_path: Path, trouble: str) -> None:
    told = Told(tmp_path)
    async with talking(square, made(tmp_path)):
        await square.says("one apple")
        if trouble == "crash":
            assert await square.says("crash mark") == "I live again"
            parts = [part for entry in await path(square) for part in entry.parts]
            assert [part.id for part in parts if isinstance(part, ToolResult)] == ["c1"], "what it finished is kept"
            assert "cut off" in await view(square, tmp_path)
            last = await square.says("crash")
            assert "program.py" not in last
            assert "The disk is on fire".casefold() in last.casefold()
            assert "/retry" in last
        else:
            assert await square.says(trouble) == "Now I mean it"
        assert told.count("load") >= 1
        assert "one apple" in await view(square, tmp_path)


@one
async def test_a_kill_of_the_process_between_turns_is_no_trouble(square: Square, tmp_path: Path) -> None:
    agent = made(tmp_path)
    async with talking(square, agent):
        await square.says("one apple")
        assert agent.process is not None
        os.kill(agent.process.pid, signal.SIGKILL)
        assert await square.says("two pears") == "You said: two pears"
        assert Told(tmp_path).count("load") == 1


@one
async def test_ten_sessions_share_a_process_and_one_that_hangs_keeps_nobody(square: Square, tmp_path: Path) -> None:
    told = Told(tmp_path)
    agent = made(tmp_path, settle=0.2)
    people = [square.platform.person(f"P{n}") for n in range(10)]
    chats = [square.platform.dm(person) for person in people]
    async with talking(square, agent, GatewaySettings(attempts=1)):
        for person, chat in zip(people, chats, strict=True):
            await square.says("hello", who=person, where=chat)
        assert agent.process is not None
        first = agent.process
        people[0].says("hang", chats[0])
        await until(lambda: told.count("prompt hang") == 1)
        for person, chat in zip(people[1:], chats[1:], strict=True):
            assert await square.says("go on", who=person, where=chat) == "You said: go on"
        assert agent.process is first
        people[1].says("wait", chats[1])
        await until(lambda: told.count("prompt wait") == 1)
        await square.says("/stop", who=people[0], where=chats[0])
        await until(lambda: first.retired)
        assert await square.says("again", who=people[2], where=chats[2]) == "You said: again"
        assert agent.process is not first
        await square.says("/stop", who=people[1], where=chats[1])
        await until(lambda: first._process.returncode is not None)


async def test_a_turn_that_waits_for_a_permission_survives_kills_of_gateway_and_agent(
    stage: Stage, tmp_path: Path
) -> None:
    town, told = stage.town, Told(tmp_path)
    [chat, *_] = town.chats
    plan = {"mind": Mind.ACP, "spy": str(tmp_path), "lease": 3.0}
    async with stage.gateway(**plan):
        await town.say(chat, "m1", text="one apple")
        await town.hears(chat, "You said: one apple")
        await town.say(chat, "m2", text="remove old.txt")
        await town.hears(chat, "rm old.txt")
        # What is sent to one place goes in order: once this is there, the message with the question is known.
        await town.say(chat, "m3", text="/who")
        await town.answer("m3")
    [shown] = [call for call in town.calls(chat) if call["choices"]]
    async with stage.gateway(**plan):
        # The agent asks the same thing again, and it is the same question.
        await until(lambda: told.count("prompt remove old.txt") == 2)
        await town.say(chat, "m4", text="", pressed={"message": shown["key"], "choice": "yes"})
        await town.hears(chat, "old.txt is gone")
        await town.say(chat, "m5", text="recall")
        await town.hears(chat, "I looked")
    assert len([call for call in town.calls(chat) if call["choices"]]) == 1
    assert told.lines.count("permission old.txt y") == 1
    assert told.count("load") == 1, "its own session went on"
    seen = (tmp_path / "view").read_text()
    assert "one apple" in seen
    assert "An earlier attempt at the following was cut off." in seen
    orphans = [line.split()[1].split("-")[0] for line in told.lines if line.startswith("new")]
    await until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in orphans))


async def test_an_agent_has_a_lasting_child_without_a_thread_by_the_gateways_tools(tmp_path: Path) -> None:
    platform = PERSONAS[0]()
    ann = platform.person("Ann")
    chat, agent = platform.dm(ann), made(tmp_path)

    async def calls(tool: str, **arguments: object) -> dict[str, str]:
        before = len(chat.replies)
        ann.says(f"call {tool} {json.dumps(arguments)}", chat)

        def answered() -> str | None:
            return next((reply for reply in chat.replies[before:] if reply.startswith("{")), None)

        result: dict[str, str] = json.loads(await platform.changes.until(answered, lambda: f"{chat.replies}"))
        return result

    try:
        async with house(tmp_path, agent, platform.adapter()) as here, platform.reaching(here.gateway.webhooks()):
            begun = await calls("sessions_spawn", task="I am plum 0", mode="session", label="fruit")
            await until(lambda: any("You said: I am plum 0" in reply for reply in chat.replies))
            for n in range(1, 10):
                if n in {4, 7}:
                    assert agent.process is not None
                    os.kill(agent.process.pid, signal.SIGKILL)
                sent = await calls("sessions_send", label="fruit", message=f"I am plum {n}", wait=30)
                assert sent["reply"] == f"You said: I am plum {n}"
            await calls("sessions_send", label="fruit", message="recall", wait=30)
            seen = (tmp_path / "view").read_text()
            assert [seen.count(f"You said: I am plum {n}") for n in range(10)] == [1] * 10
            assert "sessions_send" not in seen, "its context is its own"
            assert await here.gateway.store.lanes_of(SessionId(begun["session"])) == []
    finally:
        await agent.close()


@one
async def test_a_turn_without_a_sign_of_life_is_ended_with_an_error_and_the_session_goes_on(
    square: Square, tmp_path: Path
) -> None:
    agent = made(tmp_path, settle=0.2)
    await agent._running()
    async with talking(square, agent, GatewaySettings(attempts=1, turn_silence=6.0)):
        assert await square.says("hello") == "You said: hello"
        said = await square.says("hang")
        assert "said nothing for 6 s" in said
        assert "/retry" in said
        assert await square.says("hello again") == "You said: hello again"
        assert Told(tmp_path).count("load") == 1, "another process, and its own session again"


@one
async def test_a_line_that_is_too_long_is_told_as_what_it_is_and_the_session_goes_on(
    square: Square, tmp_path: Path
) -> None:
    async with talking(square, made(tmp_path), GatewaySettings(attempts=1)):
        await square.says("one apple")
        said = await square.says("long 17000000")
        assert "it wrote a line of more than 16 MB" in said
        assert "/retry" in said
        assert await square.says("hello") == "You said: hello"
        seen = await view(square, tmp_path)
        assert "one apple" in seen
        assert "xxx" not in seen
        assert Told(tmp_path).count("load") == 1
