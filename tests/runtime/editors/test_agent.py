"""An editor, made with the protocol's own library, beside a page of the same person."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import apsw
import pytest
from acp import RequestError, embedded_text_resource, image_block, resource_block, resource_link_block
from acp.schema import AvailableCommandsUpdate

from segue.agents.given import as_agent
from segue.core.contracts.agents import Agent, Progress, Work
from segue.core.messages import File, Reasoning, Text, ToolCall, ToolResult
from segue.runtime.windows.frames import AnsweredFrame, QuestionsFrame
from segue.testing.agents import EchoAgent, Pause, ScriptedAgent
from tests.editors import Editor, editor_in
from tests.runtime.house import House, house


def lanes_in(path: Path) -> int:
    # By the library of the gateway in this process: another one's close would end its locks and delete its log.
    with closing(apsw.Connection(str(path / "segue.db"))) as base:
        [(count,)] = base.execute("select count(*) from lanes")
        return int(count)


@asynccontextmanager
async def beside(path: Path, agent: Agent) -> AsyncIterator[tuple[House, Editor]]:
    async with house(path, agent) as here, here.at_socket(), editor_in(path) as editor:
        yield here, editor


async def test_an_editor_talks_lists_and_loads(tmp_path: Path) -> None:
    async with beside(tmp_path, EchoAgent()) as (here, editor):
        session = await editor.new()
        assert await editor.says(session, "a good cup of tea") == "end_turn"
        assert editor.shows(session) == [("agent", "a good cup of tea")]
        async with here.page() as page:
            await page.opened()
            await page.shows("a good cup of tea", "a good cup of tea")
            await page.says("and cake")
            await page.shown(AnsweredFrame)
        await editor.until(lambda: editor.shows(session)[1:] == [("person", "and cake"), ("agent", "and cake")])
        listed = await editor.agent.list_sessions()
        assert [one.session_id for one in listed.sessions] == [session]
        assert listed.sessions[0].title == "a good cup of tea"
        async with editor_in(tmp_path) as other:
            await other.load(session)
            whole = [("person", "a good cup of tea"), ("agent", "a good cup of tea"), *editor.shows(session)[1:]]
            assert other.shows(session) == whole


async def test_thoughts_tools_and_progress_stream_and_are_the_same_when_loaded(tmp_path: Path) -> None:
    pause, later = Pause(), Pause()
    agent = ScriptedAgent(
        (
            Reasoning("test", {"thinking": "They want tea."}),
            Progress("boiling water"),
            pause,
            "One ",
            "moment.",
            ToolCall("t1", "kettle", {"cups": 2}),
            later,
            ToolResult("t1", "hot", failed=False),
            "Here is ",
            "your tea.",
        )
    )
    async with beside(tmp_path, agent) as (_here, editor):
        session = await editor.new()
        prompting = asyncio.create_task(editor.says(session, "tea"))
        await pause.reached()
        await editor.until(lambda: ("tool", "boiling water: in_progress") in editor.shows(session))
        pause.over()
        await later.reached()
        await editor.until(lambda: ("tool", "kettle: in_progress") in editor.shows(session))
        later.over()
        assert await prompting == "end_turn"
        assert editor.shows(session) == [
            ("thought", "They want tea."),
            ("tool", "boiling water: in_progress completed"),
            ("agent", "One moment."),
            ("tool", "kettle: in_progress completed"),
            ("agent", "Here is your tea."),
        ]
        async with editor_in(tmp_path) as other:
            await other.load(session)
            kept = [one for one in editor.shows(session) if "boiling" not in one[1]]
            assert other.shows(session) == [("person", "tea"), *kept]


async def test_cancel_is_stop(tmp_path: Path) -> None:
    pause = Pause()
    async with beside(tmp_path, ScriptedAgent(("Let me ", "see", pause))) as (_here, editor):
        session = await editor.new()
        prompting = asyncio.create_task(editor.says(session, "tea"))
        await pause.reached()
        await editor.agent.cancel(session_id=session)
        assert await prompting == "cancelled"
        assert "(Stopped.)" in str(editor.shows(session))


async def test_a_question_is_asked_in_the_editor_and_elsewhere_and_the_first_answer_wins(tmp_path: Path) -> None:
    async def asks(work: Work) -> AsyncIterator[str]:
        answer = await work.ask("Delete all of it?", choices=("yes", "no"))
        yield f"You said {answer}."

    async with beside(tmp_path, as_agent(asks)) as (here, editor), here.page() as page:
        session = await editor.new()
        prompting = asyncio.create_task(editor.says(session, "tidy up"))
        await editor.until(lambda: editor.asked)
        assert [option.kind for option in editor.asked[0].options] == ["allow_once", "reject_once"]
        await page.shown(QuestionsFrame, lambda frame: frame.questions)
        editor.asked[0].chosen.set_result("no")
        assert await prompting == "end_turn"
        await page.shown(QuestionsFrame, lambda frame: not frame.questions)
        assert "You said no." in editor.shows(session)[-1][1]

        prompting = asyncio.create_task(editor.says(session, "tidy up"))
        await editor.until(lambda: len(editor.asked) == 2)
        asked = await page.shown(QuestionsFrame, lambda frame: frame.questions)
        await page.says(f"/answer {asked.questions[0].id} yes")
        assert await prompting == "end_turn"
        assert ("tool", "Delete all of it?: pending completed") in editor.shows(session)
        assert "You said yes." in editor.shows(session)[-1][1]


async def test_words_that_are_asked_for_are_the_next_prompt(tmp_path: Path) -> None:
    async def asks(work: Work) -> AsyncIterator[str]:
        yield f"To {await work.ask('To which city?')}."

    async with beside(tmp_path, as_agent(asks)) as (_here, editor):
        session = await editor.new()
        assert await editor.says(session, "book a flight") == "end_turn"
        assert editor.shows(session) == [("agent", "To which city?")]
        await editor.says(session, "Oslo")
        await editor.until(lambda: "To Oslo." in str(editor.shows(session)))


async def test_commands_are_offered_and_turn_the_conversation(tmp_path: Path) -> None:
    async with beside(tmp_path, EchoAgent()) as (_here, editor):
        session = await editor.new()
        offered = await editor.until(
            lambda: [u for u in editor.updates[session] if isinstance(u, AvailableCommandsUpdate)]
        )
        assert {"handoff", "branch", "undo", "resume"} <= {one.name for one in offered[0].available_commands}
        for words in ("one", "two", "/title Tea", "/undo", "/branch", "three"):
            assert await editor.says(session, words) == "end_turn"
        assert ("title", "Tea") in editor.shows(session)
        async with editor_in(tmp_path) as other:
            listed = (await other.agent.list_sessions()).sessions
            assert [one.title for one in listed] == ["Tea #2", "Tea #1"]
            await other.load(session)
            assert other.shows(session) == [("title", "Tea #1"), ("person", "one"), ("agent", "one")]
            branch = listed[0].session_id
            await other.load(branch)
            assert other.shows(branch)[1:] == [
                ("person", "one"),
                ("agent", "one"),
                ("person", "three"),
                ("agent", "three"),
            ]
            # Turned to another session, an editor is sent what it doesn't have of it.
            await other.says(session, f"/resume {branch}")
            assert ("person", "three") in other.shows(session)


async def test_pictures_and_files_come_along(tmp_path: Path) -> None:
    agent = ScriptedAgent("I see.", "And again.")
    async with beside(tmp_path, agent) as (_here, editor):
        session = await editor.new()
        picture = image_block(base64.b64encode(b"a picture").decode(), "image/png")
        code = resource_block(embedded_text_resource("file:///tea.py", "brew()"))
        await editor.says(session, "what is this? ", picture, resource_link_block("cup.py", "file:///cup.py"), code)
        parts = agent.works[0].asked[0].parts
        words, file = parts
        assert isinstance(words, Text)
        assert words.text == "what is this? [cup.py](file:///cup.py)\n\nfile:///tea.py\n\n```\nbrew()\n```"
        assert isinstance(file, File)
        assert (tmp_path / file.where).read_bytes() == b"a picture"
        with pytest.raises(RequestError, match="base64"):
            await editor.says(session, image_block("%%%", "image/png"))
        async with editor_in(tmp_path) as other:
            await other.load(session)
            assert other.shows(session)[0][1].endswith("<image.png>")


async def test_what_isnt_there_and_what_isnt_open_is_said(tmp_path: Path) -> None:
    async with beside(tmp_path, EchoAgent()) as (_here, editor):
        with pytest.raises(RequestError) as found:
            await editor.load("nothing")
        assert found.value.code == -32002
        with pytest.raises(RequestError, match="Load it first"):
            await editor.says("nothing", "hello")
        with pytest.raises(RequestError):
            await editor.agent.list_sessions(cursor="nothing")


@pytest.mark.parametrize("session", ["x" * 65, "a/b", "01" * 13, ""])
async def test_a_session_that_isnt_there_leaves_no_lane(tmp_path: Path, session: str) -> None:
    async with beside(tmp_path, EchoAgent()) as (_here, editor):
        await editor.new()
        before = lanes_in(tmp_path)
        for opening in (editor.agent.load_session, editor.agent.resume_session):
            with pytest.raises(RequestError) as found:
                await opening(cwd="/tmp", session_id=session)
            assert found.value.code == -32002
        assert lanes_in(tmp_path) == before


async def test_the_same_prompt_again_is_one(tmp_path: Path) -> None:
    async with beside(tmp_path, EchoAgent()) as (_here, editor):
        session = await editor.new()
        await editor.says(session, "tea", messageId="m1")
        async with editor_in(tmp_path) as other:
            await other.load(session)
            assert await other.says(session, "tea", messageId="m1") == "end_turn"
            assert other.shows(session) == [("person", "tea"), ("agent", "tea")]
