"""What agents ask of other sessions: messages and waits, limits, who sees what, and turns that are tried again."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from segue.core.contracts.adapters import OpensThreads
from segue.core.contracts.agents import Agent, Event, Tool, Tools, Work
from segue.core.lanes import Address, Kind, Rules, Sharing
from segue.core.messages import Text, ToolCall, ToolResult
from segue.core.moves import Limits
from segue.core.settings import GatewaySettings, Settings
from segue.core.transcripts import Entry, Role
from segue.core.values import SessionId, Value
from segue.errors import Invalid, Refusal
from segue.runtime.tools import children
from segue.runtime.tools.arguments import schema_of, take
from segue.runtime.tools.children import CloseArguments, SpawnArguments
from segue.runtime.tools.messages import SendArguments
from segue.runtime.tools.reading import HistoryArguments, SessionsListArguments
from segue.store import Store
from segue.testing.agents import Pause, ScriptedAgent, Step, Uses, said
from segue.testing.faults import Call, Fault, RateLimit
from segue.testing.personas import Slack, Telegram
from segue.testing.waits import PATIENCE
from tests.chatting import Chatting, Script, by_function, by_script, results, uses


@pytest.fixture
def stage(database: str) -> Chatting:
    return Chatting(database)


class Noting:
    """An agent, with a note of what its calls came back with."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.results: list[ToolResult] = []

    def answer(self, work: Work) -> AsyncIterator[Event]:
        return self._agent.answer(replace(work, tools=NotingTools(work.tools, self.results)))


class NotingTools:
    """The tools of a turn, the same but noted."""

    def __init__(self, tools: Tools, results: list[ToolResult]) -> None:
        self._tools = tools
        self._results = results

    @property
    def offered(self) -> tuple[Tool, ...]:
        return self._tools.offered

    async def call(self, call: ToolCall) -> ToolResult:
        self._results.append(await self._tools.call(call))
        return self._results[-1]


def doing(**deeds: Iterable[Step]) -> Script:
    """A script by the first word of what is asked; anything else is said again."""

    def script(work: Work) -> Iterable[Step]:
        word = said(work).split()[0].lower()
        return deeds[word] if word in deeds else [f"heard: {said(work)}"]

    return script


def spawn(id: str = "spawn", **more: Any) -> Uses:
    return uses("sessions_spawn", id, **({"task": "begin", "mode": "session", "label": "kid"} | more))


def kids(text: str) -> str:
    """What the child says, as it stands in the chat of its parent."""
    return f"{text}\n\n(This is from “kid”.)"


def send(message: str, id: str = "send", **more: Any) -> Uses:
    return uses("sessions_send", id, **({"message": message, "label": "kid"} | more))


async def last(store: Store, stage: Chatting) -> ToolResult:
    """What the last tool of the conversation came back with."""
    return (await results(store, await stage.session(store)))[-1]


async def written(store: Store, session: SessionId, count: int) -> list[Entry]:
    """What was said in a session, once it is so much."""
    async with asyncio.timeout(PATIENCE):
        while True:
            path = await store.path(session)
            if len(path) >= count:
                return path
            await asyncio.sleep(0.01)


def test_a_model_reads_the_type_of_each_argument() -> None:
    class Arguments(Value, frozen=True):
        mode: Literal["run", "session"]
        count: int = 1

    properties = schema_of(Arguments)["properties"]
    assert {name: each["type"] for name, each in properties.items()} == {"mode": "string", "count": "integer"}


async def test_a_lasting_child_on_a_flat_chat_keeps_what_was_said_over_ten_messages_and_a_restart(
    stage: Chatting,
) -> None:
    def script(work: Work) -> Iterable[Step]:
        words = said(work)
        if words == "start":
            return [spawn(), "started"]
        if words.startswith("tell "):
            return [send(words.removeprefix("tell "), id=words), f"told {words}"]
        heard = [e.text for e in work.transcript if e.author.role is Role.GATEWAY]
        return [f"{words}; before that: {len(heard)}"]

    async with stage.running(by_script(script)):
        stage.says("start")
        await stage.chat.reads(kids("begin; before that: 0"))
        for n in range(1, 6):
            stage.says(f"tell word {n}")
            await stage.chat.reads(kids(f"word {n}; before that: {n}"))
    async with stage.running(by_script(script)):
        for n in range(6, 11):
            stage.says(f"tell word {n}")
            await stage.chat.reads(kids(f"word {n}; before that: {n}"))
    assert len([text for text in stage.chat.replies if "before that" in text]) == 11


async def test_an_answer_that_is_waited_for_is_the_result_and_not_delivered(stage: Chatting) -> None:
    agent = by_script(doing(go=[spawn(mode="session"), send("question", wait=60), "thanks"], question=["the answer"]))
    async with stage.running(agent) as store:
        stage.says("go")
        await stage.chat.reads("thanks")
        assert (await last(store, stage)).content["reply"] == "the answer"
        # What is sent to one address goes in order: whatever else was to be delivered stands before this.
        stage.says("bye")
        await stage.chat.reads("heard: bye")
    assert sorted(stage.chat.replies) == [kids("heard: begin"), "heard: bye", "thanks"]


async def test_an_answer_that_comes_after_the_wait_is_delivered_and_not_the_result(stage: Chatting) -> None:
    pause = Pause()
    agent = by_script(doing(go=[spawn(), send("slowly", wait=0.05), "went on"], slowly=[pause, "at last"]))
    async with stage.running(agent) as store:
        stage.says("go")
        await stage.chat.reads("went on")
        told = (await last(store, stage)).content
        assert (told["state"], "reply" in told) == ("sent", False)
        pause.over()
        await stage.chat.reads(kids("at last"))
    assert stage.chat.replies.count(kids("at last")) == 1


async def test_an_answer_whose_waiter_was_stopped_is_delivered_once_in_messages_that_fit(stage: Chatting) -> None:
    pause, most = Pause(), 4096
    long = "x" * most + " at last"
    agent = by_script(doing(go=[spawn(), send("slowly", wait=300), "never"], slowly=[pause, long]))
    async with stage.running(agent):
        stage.says("go")
        await pause.reached()
        stage.says("/stop")
        await stage.chat.reads("(Stopped.)")
        pause.over()
        await stage.chat.reads(kids("at last"))
    assert stage.chat.replies[-2:] == ["x" * most, kids("at last")]
    assert stage.chat.replies.count(kids("at last")) == 1


async def test_a_turn_that_waits_holds_no_slot_and_may_wait_longer_than_an_agent_may_be_silent(stage: Chatting) -> None:
    pause = Pause()
    agent = by_script(doing(go=[spawn(), send("slowly", wait=60), "thanks"], slowly=[pause, "the answer"]))
    settings = GatewaySettings(slots=1, turn_silence=0.5)
    async with stage.running(agent, settings) as store:
        stage.says("go")
        await pause.reached()
        other = stage.beside()
        other.says("hello")
        # The slow one is given up as hung in its only slot's turn, which is an answer too; the waiter isn't.
        await stage.chat.reads("thanks")
        await other.chat.reads("heard: hello")
        assert (await last(store, stage)).content["state"] == "failed"


async def test_waiting_for_each_other_is_refused(stage: Chatting) -> None:
    parent: list[SessionId] = []

    def script(work: Work) -> Iterable[Step]:
        match said(work):
            case "go":
                parent.append(work.session)
                return [spawn(), send("first", wait=60), "thanks"]
            case "first":
                # Its own child, which it waits for, writes to the session that waits for it.
                return [spawn(label="grandkid"), send("second", label="grandkid", wait=60), "first is done"]
            case "second":
                return [uses("sessions_send", "up", message="hello", session=parent[0], wait=5), "second is done"]
            case _:
                return ["begun"]

    async with stage.running(by_script(script)) as store:
        stage.says("go")
        await stage.chat.reads("thanks")
        assert (await last(store, stage)).content["reply"] == "first is done"
        kid = await store.child(parent[0], "kid")
        [refused] = await results(store, await store.child(kid, "grandkid"))
    assert (refused.failed, refused.content) == (True, Refusal.WAITS_FOR_YOU.value)


async def test_a_session_cannot_write_to_itself(stage: Chatting) -> None:
    def script(work: Work) -> Iterable[Step]:
        return [uses("sessions_send", message="hello", session=work.session), "tried"]

    async with stage.running(by_script(script)) as store:
        stage.says("go")
        await stage.chat.reads("tried")
        told = await last(store, stage)
    assert (told.failed, told.content) == (True, Refusal.TO_ITSELF.value)


async def test_neither_a_session_with_one_task_nor_one_that_is_closed_takes_messages(stage: Chatting) -> None:
    pause = Pause()
    run: list[Step] = [spawn("run", mode="run", label="run", task="work"), send("more", "a", label="run"), "started"]
    known: list[SessionId] = []

    def script(work: Work) -> Iterable[Step]:
        match said(work):
            case "go":
                return run
            case "work":
                known.append(work.session)
                return [pause, "done"]
            case "after":
                return [send("more", "b", label="", session=known[0]), send("more", "c", label="run"), "tried"]
            case words:
                return [f"heard: {words.splitlines()[-1]}"]

    async with stage.running(by_script(script)) as store:
        stage.says("go")
        await stage.chat.reads("started")
        await pause.reached()
        pause.over()
        await stage.chat.reads("heard: done")
        stage.says("after")
        await stage.chat.reads("tried")
        told = {result.id: result for result in await results(store, await stage.session(store))}
        assert [entry.text for entry in await store.path(known[0])] == ["work", "done"]
    assert all(told[id].failed for id in "abc")
    assert told["a"].content == Refusal.ONE_TASK.value
    assert told["b"].content.startswith("That session is closed.")
    assert told["c"].content.startswith("No session of yours goes by that.")


async def test_a_child_may_write_to_its_parent_which_learns_who_it_is(stage: Chatting) -> None:
    parent: list[SessionId] = []

    def script(work: Work) -> Iterable[Step]:
        if said(work) == "go":
            parent.append(work.session)
            return [spawn(), "started"]
        if said(work) == "begin":
            return [uses("sessions_send", message="news", session=parent[0]), "told"]
        return [f"heard: {said(work)}"]

    async with stage.running(by_script(script)) as store:
        stage.says("go")
        await stage.chat.reads(kids("told"))
        kid = await store.child(parent[0], "kid")
        await stage.chat.reads(f"heard: From your child session “kid” ({kid}):\n\nnews")


async def test_a_task_is_finished_when_those_of_its_own_children_are(stage: Chatting) -> None:
    pause = Pause()

    def script(work: Work) -> Iterable[Step]:
        words = said(work)
        if words == "go":
            return [spawn(mode="run"), "started"]
        if words == "begin":
            return [spawn(mode="run", task="deep"), "wait for it"]
        if words == "deep":
            return [pause, "42"]
        return [f"so it is {words.split()[-1]}"]

    async with stage.running(by_script(script)) as store:
        stage.says("go")
        await stage.chat.reads("started")
        await pause.reached()
        session = await stage.session(store)
        [kid] = await store.children(session)
        assert kid.closed is None
        pause.over()
        await stage.chat.reads("so it is 42")
        path = [entry.text for entry in await store.path(session)]
    assert stage.chat.replies == ["started", "so it is 42"]
    assert len([text for text in path if "so it is 42" in text]) == 2


async def test_a_child_that_fails_tells_its_parent(stage: Chatting) -> None:
    def script(work: Work) -> Iterable[Step]:
        match said(work):
            case "go":
                return [spawn(mode="run"), "started"]
            case "begin":
                return [RuntimeError("broken")]
            case words:
                return [f"heard: {words}"]

    async with stage.running(by_script(script), GatewaySettings(attempts=1)) as store:
        stage.says("go")
        [_, heard] = await stage.chat.reads_some(2)
        assert not await store.children(await stage.session(store))
    assert heard.startswith("heard: From your child session “kid”")
    assert "went wrong" in heard


@pytest.mark.parametrize("agent", [by_script, by_function], ids=["script", "function"])
async def test_a_turn_that_is_tried_again_finds_what_it_asked_for_first(
    stage: Chatting, agent: Callable[[Script], Agent]
) -> None:
    tries: list[Work] = []

    def script(work: Work) -> Iterable[Step]:
        if said(work) != "go":
            return [f"heard: {said(work)}"]
        tries.append(work)
        n = len(tries)
        # A model gives its calls new ids each time. Of two children without a label only the key says which is which.
        steps: list[Step] = [spawn(f"a{n}"), send("one", f"b{n}"), send("one", f"c{n}")]
        steps += [spawn(f"d{n}", label=""), spawn(f"e{n}", label=""), spawn(f"f{n}", label="", mode="run")]
        return [*steps, RuntimeError("broken") if n == 1 else "done"]

    noting = Noting(agent(script))
    async with stage.running(noting) as store:
        stage.says("go")
        await stage.chat.reads("done")
        session = await stage.session(store)
        assert len(tries) == 2
        assert len(await store.branches(session)) == 4
        kid = await store.child(session, "kid")
        path = await written(store, kid, 6)
    first, second = noting.results[:6], noting.results[6:]
    assert not any(result.failed for result in first)
    assert [result.content for result in second] == [result.content for result in first]
    assert len({result.content["session"] for result in first}) == 4
    assert [entry.text for entry in path if entry.author.role is Role.GATEWAY] == ["begin", "one", "one"]


class Stubborn:
    """Fails once, and asks for the same by the same ids again, whatever its journal shows."""

    def __init__(self) -> None:
        self.results: list[ToolResult] = []

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        calls = [ToolCall("list", "sessions_list", {}), ToolCall("spawn", "sessions_spawn", {"task": "begin"})]
        for call in calls if said(work) == "go" else []:
            yield call
            self.results.append(await work.tools.call(call))
            yield self.results[-1]
        if said(work) == "go" and len(self.results) == len(calls):
            raise RuntimeError("broken")
        yield Text("done")


async def test_what_was_done_before_a_turn_is_tried_again_is_found_by_its_id(stage: Chatting) -> None:
    agent = Stubborn()
    async with stage.running(agent):
        stage.says("go")
        await stage.chat.reads("done")
    first, second = [result.content["children"] for result in agent.results if result.id == "list"]
    assert first == second == [], "the list that the first try was shown"


async def test_the_limits_hold_at_their_edge(stage: Chatting) -> None:
    def script(work: Work) -> Iterable[Step]:
        match said(work).split():
            case ["children"]:
                return [*(spawn(f"call {n}", label=f"kid {n}") for n in range(3)), "tried"]
            case ["deep", *_]:
                return [spawn(task="deep down", label="kid"), "deeper"]
            case _:
                return ["begun"]

    limits = Limits(depth=2, children=2)
    async with stage.running(by_script(script), GatewaySettings(routing=Settings(limits=limits))) as store:
        stage.says("children")
        await stage.chat.reads("tried")
        wide = [result.content for result in await results(store, await stage.session(store))]
        other = stage.beside()
        other.says("deep")
        await other.chat.reads_some(3)
        session = await other.session(store)
        grandkid = await store.child(await store.child(session, "kid"), "kid")
        [deep] = await results(store, grandkid)
    assert [isinstance(told, dict) for told in wide] == [True, True, False]
    assert wide[2] == Refusal.TOO_MANY_CHILDREN.value
    assert (deep.failed, deep.content) == (True, Refusal.TOO_DEEP.value)


async def test_a_label_is_one_childs_at_a_time(stage: Chatting) -> None:
    close = uses("sessions_close", "close", label="kid")
    agent = by_script(doing(go=[spawn("a"), spawn("b", task="again"), close, spawn("c", task="once more"), "tried"]))
    async with stage.running(agent) as store:
        stage.says("go")
        await stage.chat.reads("tried")
        told = await results(store, await stage.session(store))
    assert [result.failed for result in told] == [False, True, False, False]
    assert told[1].content == Refusal.LABEL_TAKEN.value


async def test_two_agents_that_talk_to_each_other_come_to_an_end(stage: Chatting) -> None:
    parent: list[SessionId] = []

    def script(work: Work) -> Iterable[Step]:
        if said(work) == "go":
            parent.append(work.session)
            return [spawn(), "started"]
        if work.session == parent[0]:
            return [send("and you?"), "asked"]
        return [uses("sessions_send", message="how are you?", session=parent[0]), "asked back"]

    agent, limits = ScriptedAgent(otherwise=script), Limits(budget=6)
    async with stage.running(agent, GatewaySettings(routing=Settings(limits=limits))) as store:
        stage.says("go")
        # One that started, six that came of it; the last of these was refused to ask on.
        await stage.chat.reads_some(7)
        told = await results(store, parent[0])
        kid = await results(store, await store.child(parent[0], "kid"))
        await agent.idle()
    assert len(agent.works) == 7
    refused = [result.content for result in (*told, *kid) if result.failed]
    assert refused == [Refusal.OVER_BUDGET.value]


async def test_somebody_elses_session_is_as_if_it_were_not_there(database: str) -> None:
    stage = Chatting(database, Slack, Kind.GROUP)
    bob = stage.platform.person("Bob")
    known: list[str] = ["01hf7yaxx0ee32cj1fc7326z61"]

    def script(work: Work) -> Iterable[Step]:
        if said(work) == "spawn":
            return [spawn(), "started"]
        if said(work) != "look":
            return ["begun"]
        steps = [uses("sessions_list", "list")]
        for tool in ("sessions_history", "sessions_close", "sessions_send"):
            more = {"message": "hello"} if tool == "sessions_send" else {}
            steps += [uses(tool, f"{tool} {id}", session=id, **more) for id in known]
            steps.append(uses(tool, f"{tool} label", label="kid", **more))
        return [*steps, spawn("his", label="his"), "looked"]

    async with stage.running(by_script(script)) as store:
        thread = stage.ann.opens_thread("a thread", stage.chat)
        stage.ann.says("spawn", thread)
        await thread.reads(kids("begun"))
        session = await store.bound(await store.lane(thread.place, await stage.person(store)))
        assert session is not None
        known += [session.id, await store.child(session.id, "kid")]
        bob.says("look", thread)
        await thread.reads("looked")
        told = {result.id: result for result in await results(store, session.id)}
    listed = told["list"].content
    assert (listed["children"], listed["others"]) == ([], [])
    assert told["his"].content == Refusal.OWNER_STARTS.value
    found = {result.content for id, result in told.items() if id not in {"spawn", "list", "his"}}
    assert found == {"No session of yours goes by that. sessions_list shows them."}
    assert all(result.failed for id, result in told.items() if id not in {"spawn", "list"})


async def test_a_persons_agent_sees_what_it_started_and_the_persons_other_sessions(stage: Chatting) -> None:
    history = uses("sessions_history", "history", label="kid")
    close = uses("sessions_close", "close", label="kid")
    listing = uses("sessions_list", "list")
    agent = by_script(doing(go=[spawn(), "started"], look=[history, close, listing, "looked"]))
    async with stage.running(agent) as store:
        stage.says("first")
        await stage.chat.reads("heard: first")
        before = await stage.session(store)
        stage.says("/new")
        stage.says("go")
        await stage.chat.reads(kids("heard: begin"))
        stage.says("look")
        await stage.chat.reads("looked")
        session = await stage.session(store)
        told = {result.id: result.content for result in await results(store, session)}
        kid = told["spawn"]["session"]
    assert [entry["text"] for entry in told["history"]["entries"]] == ["begin", "heard: begin"]
    assert all(entry.get("name", "nobody") for entry in told["history"]["entries"]), "who has no name is given none"
    assert told["list"]["children"] == [{"session": kid, "label": "kid", "mode": "session", "state": "closed"}]
    assert [other["session"] for other in told["list"]["others"]] == [before]


async def test_closing_a_child_stops_what_it_does(stage: Chatting) -> None:
    pause = Pause()
    agent = by_script(doing(go=[spawn(mode="run"), "started"], begin=["so far", pause, "never said"], end=_END))
    async with stage.running(agent) as store:
        stage.says("go")
        await pause.reached()
        session = await stage.session(store)
        kid = await store.child(session, "kid")
        stage.says("end")
        await stage.chat.reads("ended")
        told = (await results(store, session))[-1].content
        path = await written(store, kid, 3)
        stage.says("bye")
        await stage.chat.reads("heard: bye")
    assert told["state"] == "closed"
    assert [entry.text for entry in path] == ["begin", "so far", "(Stopped.)"]
    # Who closed it knows, and gets no result.
    assert stage.chat.replies == ["started", "ended", "heard: bye"]


_END = (uses("sessions_close", "close", label="kid"), "ended")


async def test_what_waits_in_a_closed_child_is_taken_back_also_if_nobody_runs_it(stage: Chatting) -> None:
    pause = Pause()
    steps: list[Step] = [spawn(), send("one", "one"), send("two", "two"), *_END]
    agent = ScriptedAgent(otherwise=doing(go=steps, begin=[pause]))
    async with stage.running(agent, GatewaySettings(slots=1)) as store:
        stage.says("go")
        await stage.chat.reads("ended")
        stage.says("bye")
        await stage.chat.reads("heard: bye")
        kid = (await results(store, await stage.session(store)))[0].content["session"]
        assert (await store.session(kid, await stage.person(store))).closed is not None
        assert await store.path(kid) == []
    assert len(agent.works) == 2


async def test_the_children_of_a_closed_parent_stay_and_are_listed(stage: Chatting) -> None:
    async with stage.running(
        by_script(doing(go=[spawn(), "started"], look=[uses("sessions_list"), "looked"]))
    ) as store:
        stage.says("go")
        await stage.chat.reads(kids("heard: begin"))
        person, session = await stage.person(store), await stage.session(store)
        kid = await store.child(session, "kid")
        await store.close_session(session, person)
        stage.says("look")
        await stage.chat.reads("looked")
        listed = (await last(store, stage)).content
        assert (await store.session(kid, person)).closed is None
    assert {other["session"]: other["state"] for other in listed["others"]} == {kid: "open", session: "closed"}


async def test_a_task_that_somebody_else_closes_is_told_to_its_own_parent(stage: Chatting) -> None:
    pause = Pause()
    grandkid: list[SessionId] = []

    def script(work: Work) -> Iterable[Step]:
        words = said(work)
        if words == "go":
            return [spawn(mode="run"), "started"]
        if words == "begin":
            return [spawn(mode="run", task="deep"), "wait for it"]
        if words == "deep":
            grandkid.append(work.session)
            return [pause, "never said"]
        if words == "end":
            return [uses("sessions_close", session=grandkid[0]), "ended"]
        return [f"so {words.splitlines()[-1]}"]

    async with stage.running(by_script(script)):
        stage.says("go")
        await pause.reached()
        stage.says("end")
        await stage.chat.reads("so so It was closed before it finished its task.")
    assert sorted(stage.chat.replies) == ["ended", "so so It was closed before it finished its task.", "started"]


async def test_only_what_a_session_started_can_be_closed_from_it(stage: Chatting) -> None:
    before: list[SessionId] = []

    def script(work: Work) -> Iterable[Step]:
        if said(work) == "one":
            before.append(work.session)
            return ["heard"]
        return [
            uses("sessions_close", "a", session=before[0]),
            uses("sessions_close", "b", session=work.session),
            "tried",
        ]

    async with stage.running(by_script(script)) as store:
        stage.says("one")
        await stage.chat.reads("heard")
        stage.says("/new")
        stage.says("two")
        await stage.chat.reads("tried")
        told = await results(store, await stage.session(store))
    assert [result.content for result in told] == [Refusal.NOT_ITS_CHILD.value, Refusal.TO_ITSELF.value]


async def test_a_fork_knows_what_was_said_before(stage: Chatting) -> None:
    def script(work: Work) -> Iterable[Step]:
        if said(work) == "go":
            return [spawn(start="fork"), "started"]
        return [" + ".join([*(entry.text for entry in work.transcript if entry.text), said(work)])]

    async with stage.running(by_script(script)):
        stage.says("a secret")
        await stage.chat.reads("a secret")
        stage.says("go")
        await stage.chat.reads(kids("a secret + a secret + begin"))


async def test_a_thread_that_is_opened_from_a_thread_is_beside_it_and_everybodys(tmp_path: Path) -> None:
    stage = Chatting(str(tmp_path / "segue.db"), Slack, Kind.GROUP)
    bob, asked = stage.platform.person("Bob"), list[Address]()
    adapter = stage.adapter
    assert isinstance(adapter, OpensThreads)
    opens = adapter.open_thread

    async def noted(parent: Address, title: str, key: str) -> Address:
        asked.append(parent)
        return await opens(parent, title, key)

    adapter.open_thread = noted  # type: ignore[method-assign]
    agent = ScriptedAgent(otherwise=doing(go=[spawn(thread=True), "started"]))
    settings = GatewaySettings(routing=Settings(rules=Rules(threads=Sharing.APART)))
    async with stage.running(agent, settings):
        outer = stage.ann.opens_thread("a thread", stage.chat)
        stage.ann.says("go", outer)
        await outer.reads("started")
        inner = await stage.chat.sees_thread()
        await inner.reads("heard: begin")
        bob.says("me too", inner)
        await inner.reads("heard: me too")
    assert asked == [stage.chat.address]
    assert len({work.session for work in agent.works if said(work) in ("begin", "me too")}) == 1


@pytest.mark.parametrize("persona", [Slack, Telegram])
async def test_a_thread_is_opened_once_though_the_line_breaks_and_the_turn_is_tried_again(
    database: str, persona: type[Slack | Telegram]
) -> None:
    stage, tries = Chatting(database, persona), [0]
    stage.platform.misbehaves(Fault.TAKES_AND_BREAKS if persona is Slack else Fault.UNREACHABLE, Call.OPEN_THREAD)

    def script(work: Work) -> Iterable[Step]:
        if said(work) != "go":
            return [f"heard: {said(work)}"]
        tries[0] += 1
        return [spawn(f"call {tries[0]}", thread=True), RuntimeError("broken") if tries[0] == 1 else "done"]

    async with stage.running(by_function(script)) as store:
        stage.says("go")
        await stage.chat.reads("done")
        [thread] = stage.chat.threads
        await thread.reads("heard: begin")
        assert len(await store.branches(await stage.session(store))) == 1


async def test_a_platform_that_can_open_no_thread_now_is_told_with_how_to_go_on(tmp_path: Path) -> None:
    stage = Chatting(str(tmp_path / "segue.db"), Slack)
    stage.platform.misbehaves(RateLimit(0.01), Call.OPEN_THREAD, None)
    asks: list[Step] = [spawn("a", thread=True), spawn("b", label="second", thread="required"), "tried"]
    async with stage.running(by_script(doing(go=asks))) as store:
        stage.says("go")
        await stage.chat.reads("tried")
        first, second = await results(store, await stage.session(store))
        assert len(await store.branches(await stage.session(store))) == 1
    assert first.content["note"].startswith("No thread was opened: slack can't now")
    assert 'sessions_send(label="kid", message=...)' in first.content["note"]
    assert second.failed
    assert second.content.startswith("thread: No thread was opened: slack can't now")


async def test_a_platform_that_never_answers_about_a_thread_doesnt_hold_the_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "_PATIENCE", 1.0)
    stage = Chatting(str(tmp_path / "segue.db"), Slack)
    stage.platform.misbehaves(Fault.HANGS, Call.OPEN_THREAD, None)
    async with stage.running(by_script(doing(go=[spawn(thread=True), "tried"])), GatewaySettings(lease=0.5)) as store:
        stage.says("go")
        await stage.chat.reads("tried")
        [told] = await results(store, await stage.session(store))
    # Each call ends before the lease could.
    assert told.content["note"].startswith("No thread was opened: slack can't now (it didn't answer in time).")


@pytest.mark.parametrize(
    ("arguments", "signature"),
    [
        (SpawnArguments, {"task": None, "mode": "run", "thread": False, "label": "", "start": "fresh"}),
        (SendArguments, {"message": None, "label": "", "session": "", "wait": 0}),
        (SessionsListArguments, {}),
        (HistoryArguments, {"label": "", "session": ""}),
        (CloseArguments, {"label": "", "session": ""}),
    ],
)
def test_the_tools_are_asked_for_as_they_are_written_down(arguments: type[Value], signature: dict[str, Any]) -> None:
    schema = schema_of(arguments)
    assert {name: given.get("default") for name, given in schema["properties"].items()} == signature
    assert schema.get("required", []) == [name for name, default in signature.items() if default is None]


@pytest.mark.parametrize(
    ("tool", "arguments", "names"),
    [
        ("sessions_spawn", {}, "task: it is missing."),
        ("sessions_spawn", {"task": 3}, "task: expected str, got int."),
        ("sessions_spawn", {"task": "x", "mode": "loop"}, "mode: invalid enum value 'loop'."),
        ("sessions_spawn", {"task": "x", "lable": "y"}, "lable: there is no such argument."),
        ("sessions_spawn", {"task": "x", "label": "two\nlines"}, "label: it has characters that can't be shown."),
        ("sessions_send", {"message": "x"}, "label: it is missing, and so is session."),
        ("sessions_send", {"message": "x", "label": "a", "session": "b"}, "session: there is a label too."),
        ("sessions_send", {"message": "x", "label": "a", "wait": 301}, "wait: expected float <= 300"),
        ("sessions_close", "{", "arguments: they aren't JSON"),
        ("sessions_close", "[" * 100_000, "arguments: they aren't JSON"),
        ("sessions_open", {}, "There is no tool sessions_open."),
    ],
)
async def test_bad_arguments_are_named_with_what_to_do(tmp_path: Path, tool: str, arguments: Any, names: str) -> None:
    stage = Chatting(str(tmp_path / "segue.db"))
    async with stage.running(ScriptedAgent([Uses("call", tool, arguments=arguments), "tried"])) as store:
        stage.says("go")
        await stage.chat.reads("tried")
        told = await last(store, stage)
    assert told.failed
    assert told.content.startswith(names)
    assert told.content.rstrip().endswith(".")


@pytest.mark.parametrize("given", [{"label": "\ud800"}, {"count": "\ud800"}, "[" * 100_000, {"label": [[]] * 9}])
def test_arguments_that_are_no_text_are_refused_in_words(given: Any) -> None:
    with pytest.raises(Invalid):
        take(given, HistoryArguments)
