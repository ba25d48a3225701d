"""Progress and questions: what an agent does now is shown and never kept; nobody can be asked yet, which is said."""

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse

from segue.adapters.http.adapter import HttpEdits
from segue.core.contracts.agents import Progress, Work
from segue.core.lanes import Address
from segue.core.messages import ToolCall, ToolResult
from segue.core.settings import TOOLS, AccountSettings, ProgressShown
from segue.core.values import Secret, SessionId
from segue.errors import Invalid
from segue.runtime.server.app import Mounted
from segue.runtime.server.listeners import Listener, serving
from segue.runtime.turns.running import NOTHING_SAID
from segue.testing import Pause, ScriptedAgent, Telegram
from tests.in_process import gateway_on
from tests.stories.square import SECRET, BehindHttp


async def test_progress_is_shown_while_a_turn_runs_and_never_kept(tmp_path: Path) -> None:
    platform, pause = Telegram(), Pause()
    agent = ScriptedAgent(["Well", Progress("looking it up"), pause, ", it is green."])
    ann = platform.person("Ann")
    chat = platform.dm(ann)
    async with gateway_on(tmp_path, agent, platform) as gateway:
        ann.says("which colour?", chat)
        await pause.reached()
        await chat.reads("Well\n\n(looking it up …)")
        pause.over()
        await chat.reads("Well, it is green.")
        [standing] = await gateway.store.lanes()
        assert standing.session is not None
        said = [entry.text for entry in await gateway.store.path(standing.session) if entry.text]
        assert said[-1] == "Well, it is green."


async def test_a_question_is_refused_in_words_as_long_as_nobody_can_be_asked() -> None:
    work = Work(SessionId("s"), 1, "", (), ())
    with pytest.raises(Invalid, match="nobody can be asked"):
        await work.ask("Which one?", ("this", "that"), key="which")


@pytest.mark.parametrize(
    ("progress", "shown"),
    [
        (ProgressShown.LINE, "Well\n\n(kettle …)"),
        (ProgressShown.FULL, "Well\n\n(looking it up …)\n(kettle …)"),
        (ProgressShown.OFF, "Well"),
    ],
)
async def test_a_running_tool_is_shown_as_its_account_says_and_folded_afterwards(
    tmp_path: Path, progress: ProgressShown, shown: str
) -> None:
    platform, pause = Telegram(), Pause()
    call, result = ToolCall("c1", "kettle", {}), ToolResult("c1", "hot")
    agent = ScriptedAgent(["Well", Progress("looking it up"), call, pause, result, "It is hot."], [])
    ann = platform.person("Ann")
    chat = platform.dm(ann)
    account = AccountSettings(public=True, progress=progress)
    async with gateway_on(tmp_path, agent, platform, account=account):
        ann.says("tea?", chat)
        await pause.reached()
        await chat.reads(shown)
        pause.over()
        await chat.reads("Well\n\nIt is hot.")
        ann.says("say nothing", chat)
        await chat.reads(NOTHING_SAID)
    assert chat.replies == ["Well\n\nIt is hot.", NOTHING_SAID]


async def test_an_agent_gets_the_tools_that_it_and_its_place_leave(tmp_path: Path) -> None:
    class Picky(ScriptedAgent):
        gateway_tools = ("ask", "schedule", "sessions_list")

    agent, platform = Picky(otherwise=lambda work: ["hi"]), Telegram()
    ann = platform.person("Ann")
    account, bob = AccountSettings(public=True, tools=("-schedule",)), platform.person("Bob")
    lane = f"{platform.name}.{platform.account}:{platform.dm(bob).id}"
    async with gateway_on(tmp_path, agent, platform, account=account, tools_of_lanes={lane: ("ask",)}):
        bob.says("hello", platform.dm(bob))
        assert [tool.name for tool in (await agent.asked()).tools.offered] == ["ask"]
        ann.says("hello", platform.dm(ann))
        work = await agent.asked(2)
        assert [tool.name for tool in work.tools.offered] == ["sessions_list", "ask"]
        refused = await work.tools.call(ToolCall("c1", "schedule", {}))
        assert refused.failed
    with pytest.raises(Invalid, match='there is no tool "shedule"'):
        AccountSettings(tools=("-shedule",))


async def test_every_tool_can_be_chosen(tmp_path: Path) -> None:
    agent, platform = ScriptedAgent("hi"), Telegram()
    ann = platform.person("Ann")
    async with gateway_on(tmp_path, agent, platform):
        ann.says("hello", platform.dm(ann))
        work = await agent.asked()
    notebook = {name for name in TOOLS if name.startswith("notes_")}
    assert {tool.name for tool in work.tools.offered} | notebook == set(TOOLS)


class Changing(BehindHttp):
    """A platform of one's own that changes messages."""

    def adapter(self) -> HttpEdits:
        return HttpEdits(self.account, Secret(SECRET), self.callback, self.shelf)

    async def take(self, scope: Any, receive: Any, send: Any) -> None:
        call = json.loads(await Request(scope, receive).body())
        if call["kind"] == "message":
            message = self.sends(Address(**call["address"]), call["text"], call["key"])
            await JSONResponse({"id": message.id})(scope, receive, send)
            return
        if call["kind"] == "edit":
            chat = self.at(Address(**call["address"]))
            self.rewrites(next(m for m in chat.messages if m.id == call["message"]), call["text"], None)
        await JSONResponse({})(scope, receive, send)


async def test_a_platform_of_ones_own_shows_progress_in_one_message_that_changes(tmp_path: Path) -> None:
    platform, pause = Changing(), Pause()
    listener = Listener("127.0.0.1", 0)
    platform.callback = f"{listener.url}/out"
    agent = ScriptedAgent(["Well", Progress("looking it up"), pause, ", it is green."])
    ann = platform.person("Ann")
    chat = platform.dm(ann)
    async with serving(Mounted(platform.take), listener):
        adapter = platform.adapter()
        async with gateway_on(tmp_path, agent, adapter) as gateway, platform.reaching(gateway.webhooks()):
            ann.says("which colour?", chat)
            await pause.reached()
            await chat.reads("Well\n\n(looking it up …)")
            pause.over()
            await chat.reads("Well, it is green.")
        await adapter.close()
    assert chat.replies == ["Well, it is green."]
