"""What an agent that somebody brought is given by a real gateway: thoughts after a failed try, files, tools."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from segue.core.contracts.agents import Tools, Work
from segue.core.messages import Reasoning, ToolCall, ToolResult
from segue.testing.agents import ScriptedAgent
from segue.testing.inbox import Shelf
from segue.testing.personas import Telegram
from tests.in_process import gateway_on


async def test_what_was_thought_before_a_call_is_there_in_the_next_try(tmp_path: Path) -> None:
    first, second, late = (Reasoning("acme", {"thought": word}) for word in ("first", "second", "late"))
    one, two = ToolCall("c1", "kettle", {}), ToolCall("c2", "kettle", {})
    # The second call ends first, and the try fails after a thought that led to no call.
    begun = (first, second, one, two, ToolResult("c2", "hot"), ToolResult("c1", "warm"), late, OSError("gone"))
    agent = ScriptedAgent(begun, "The tea is ready.")
    platform = Telegram()
    ann = platform.person("Ann")
    async with gateway_on(tmp_path, agent, platform):
        ann.says("Tea!", platform.dm(ann))
        await platform.dm(ann).reads("The tea is ready.")
    journal = agent.works[1].journal
    assert [part for part in journal if isinstance(part, Reasoning)] == [first, second]
    assert {part.id for part in journal if isinstance(part, ToolResult)} == {"c1", "c2"}
    assert journal.index(first) < journal.index(two)


async def test_the_files_of_a_message_can_be_read_and_tools_are_offered(tmp_path: Path) -> None:
    shelf = Shelf()

    async def chunks() -> AsyncIterator[bytes]:
        yield b"two eggs"

    kept = await shelf.keep("list.txt", "text/plain", chunks())

    async def reads(work: Work, tools: Tools) -> str:
        content = await work.files.read(kept)
        offered = "sessions_list" in [tool.name for tool in tools.offered]
        return f"{content.decode()}; sessions: {offered}"

    platform = Telegram()
    ann = platform.person("Ann")
    async with gateway_on(tmp_path, reads, platform, files=shelf):
        ann.says("What is on the list?", platform.dm(ann))
        await platform.dm(ann).reads("two eggs; sessions: True")
