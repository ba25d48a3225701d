"""Sessions that agents start themselves: on every platform, with a thread or without, for one task or to last."""

import asyncio
import json
from collections.abc import Callable, Iterable
from itertools import product

import pytest

from segue.core.contracts.adapters import OpensThreads
from segue.core.contracts.agents import Agent, Work
from segue.core.lanes import Kind
from segue.store import Store
from segue.testing.agents import Step, said
from segue.testing.personas import PERSONAS, Discord, Persona, Slack, WhatsApp
from tests.chatting import Chatting, Script, by_function, by_model, by_script, uses

PLACES = [*((persona, Kind.DM) for persona in PERSONAS), (Discord, Kind.GROUP), (Slack, Kind.GROUP)]
STAGES = [
    *((by_script, *place) for place in PLACES),
    *product([by_function, by_model], [WhatsApp, Slack], [Kind.DM]),
]
"""Every place with one sort of agent, and every sort where there are threads and where there are none."""
WAYS = list(product(["run", "session"], ["false", "true", '"required"']))
"""The modes, and whether there is to be a thread."""


def script(work: Work) -> Iterable[Step]:
    """What the agent does in the parent and in the child."""
    match said(work).split():
        case ["go", mode, thread]:
            yield uses("sessions_spawn", task="the task", mode=mode, thread=json.loads(thread), label="helper")
            yield "started"
        case ["the", "task"]:
            yield "done"
        case ["and", "you?"]:
            yield "fine"
        case _:
            yield f"heard: {said(work)}"


@pytest.mark.parametrize(
    ("agent", "persona", "kind"), STAGES, ids=lambda what: getattr(what, "name", getattr(what, "__name__", what))
)
async def test_every_way_to_start_a_session(
    database: str, agent: Callable[[Script], Agent], persona: type[Persona], kind: Kind
) -> None:
    stage = Chatting(database, persona, kind)
    opens = isinstance(stage.adapter, OpensThreads) and (persona, kind) != (Discord, Kind.DM)
    async with stage.running(agent(script)) as store:
        await asyncio.gather(*(_start(stage.beside(), store, mode, thread, opens=opens) for mode, thread in WAYS))


async def _start(stage: Chatting, store: Store, mode: str, thread: str, *, opens: bool) -> None:
    """One way, in a chat of its own."""
    ann = await stage.person(store)
    stage.says(f"go {mode} {thread}")
    await stage.chat.reads("started")
    parent = await stage.session(store)
    found = await store.branches(parent)
    if "required" in thread and (mode == "run" or not opens):
        assert not found, "nothing is created"
        assert stage.chat.replies == ["started"]
        return
    [child] = found
    assert (child.label, child.owner) == ("helper", ann.id)
    if mode == "run":
        result = f"heard: From your child session “helper” ({child.id}):\n\ndone"
        await stage.chat.reads(result)
        assert stage.chat.replies == ["started", result]
        assert (await store.session(child.id, ann)).closed is not None
        assert [entry.text for entry in await store.path(child.id)] == ["the task", "done"]
        assert not stage.chat.threads
    elif thread != "false" and opens:
        inside = await stage.chat.sees_thread()
        await inside.reads("done")
        assert inside.replies == ["done"]
        stage.ann.says("and you?", inside)
        await inside.reads("fine")
        assert [entry.text for entry in await store.path(child.id)] == ["the task", "done", "and you?", "fine"]
        assert "done" not in stage.chat.replies
    else:
        # Nobody takes its words for those of the session that they talk to.
        await stage.chat.reads("done\n\n(This is from “helper”.)")
        assert await store.child(parent, "helper") == child.id
        assert not await store.lanes_of(child.id)
        assert not stage.chat.threads
