"""Gateways as processes of their own, killed at will."""

import asyncio
import enum
import json
import os
import random
import signal
from collections.abc import AsyncIterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import apsw
from pydantic_ai import Agent as Pydantic
from pydantic_ai import Tool as PydanticTool
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from segue import Store
from segue.adapters.http import HttpAccount
from segue.agents.acp.agent import AcpAgent
from segue.agents.given import as_agent
from segue.core.contracts.agents import Agent, Event, Usage, Work
from segue.core.contracts.database import Driver
from segue.core.contracts.probes import Point, Probe
from segue.core.handoffs import Patience
from segue.core.limits.budgets import Amount, Budgets
from segue.core.messages import Sending, Text, ToolCall, ToolResult, plain_text
from segue.core.moves import Limits
from segue.core.people import UNBOUNDED
from segue.core.prompt.envelopes import by_then
from segue.core.prompt.envelopes import words as words_of
from segue.core.resets import Policies, Policy, When
from segue.core.settings import AccountSettings, GatewaySettings, QuestionSettings, Redaction, Settings, Streams
from segue.core.transcripts import Draft, Entry
from segue.core.values import Secret, Value
from segue.database.postgres import Postgres
from segue.database.sqlite import Sqlite
from segue.database.statements import POSTGRES, SQLITE, migrations
from segue.runtime.gateway import Gateway
from segue.runtime.server.app import make_app
from segue.runtime.server.listeners import Listener, serving
from segue.runtime.telemetry import logs
from segue.testing import Shelf
from tests import forge
from tests.agents.acp.keys import program
from tests.database.disk import Disk
from tests.drills.planting import Bug, planted

SECRET = "drill"
ACCOUNT = "alpha"


LATER = [(9999, "alter table sessions add column mood text not null default 'calm'; create table moods (mood text)")]
"""A migration of a version that is still to come: it adds, as all of them do."""


class Mind(enum.Enum):
    """Which agent answers."""

    REPEATS = "says again what it was asked"
    DELEGATES = "has children do it"
    ASKS = "does it if it may"
    APPROVED = "an agent of pydantic-ai whose tool must be approved"
    SPENDS = "reserves, spends and says so"
    ACP = "a program of its own that speaks ACP"


class Plan(Value, frozen=True):
    """How a gateway is to be run."""

    where: str
    port: int
    callback: str
    lease: float = 0.5
    pace: float = 0.0
    """Seconds that the agent takes for a turn."""
    bug: Bug = Bug.NONE
    sending: Sending = Sending.KEYED
    streams: Streams = Streams.WHOLE
    silence: float = 300.0
    """Seconds after which an agent that says nothing is hung."""
    deaths: int = 1000
    """Lives that a turn may cost: a drill takes them at random, so that no message is to blame."""
    patience: float = 60.0
    """Seconds without progress after which a handoff fails."""
    threads: bool = False
    """Whether the platform opens threads."""
    log: str = ""
    """A file for the log's lines."""
    spy: str = ""
    """A file for all that the agent is given."""
    wire: str = ""
    """A file for what a model would be sent, a line of JSON a turn."""
    redaction: Redaction = Redaction.NONE
    idle: float = 0.0
    """Minutes without a word after which a session ends; 0 for never."""
    ending: str = ""
    """What the agent is asked when a session ends."""
    newer: bool = False
    """Whether it is of a version that knows one migration more."""
    full: str = ""
    """A file; while it exists, the disk is full."""
    mind: Mind = Mind.REPEATS
    deadline: float = 86_400.0
    """Seconds for which a question stays open."""
    turns: int = 0
    """Turns that everybody has in a day; 0 for no limit."""
    tokens: int = 0
    """The same of tokens."""
    dies_at: Point | None = None
    """A label at which the process kills itself."""
    dies_after: int = 1
    """The how-manieth time that it comes there."""


class Repeats:
    """An agent that looks something up, then says again what it was asked, in two pieces."""

    def __init__(self, pace: float, spy: str, wire: str = "") -> None:
        self._pace = pace
        self._spy = Path(spy) if spy else None
        self._wire = Path(wire) if wire else None

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        if not work.journal:
            yield ToolCall("call", "look_up", {})
            yield ToolResult("call", "found")
        words = " + ".join(plain_text(draft.parts) for draft in work.asked)
        if "hang" in words:
            await asyncio.Event().wait()
        if self._spy:
            with self._spy.open("a") as spy:
                spy.write(f"{work!a}\n")
        if self._wire:
            with self._wire.open("a") as wire:
                wire.write(f"{sent(work)}\n")
        if "raise" in words:
            raise RuntimeError(words)
        if "die" in words:
            died_of(self._spy).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        while "linger" in words and not died_of(self._spy).exists():  # noqa: ASYNC110 -- another process makes it so
            await asyncio.sleep(0.01)
        yield Text("You said: ")
        await asyncio.sleep(self._pace)
        yield Text(words)


def died_of(spy: Path | None) -> Path:
    """A file that exists once a process died of its message; whoever lingers goes on then."""
    assert spy is not None, "who dies of a message, or lingers until somebody does, needs a spy"
    return spy.with_suffix(".died")


class Asks:
    """An agent that does what it is told if its person says yes, and writes down what it did."""

    def __init__(self, spy: str, streams: Streams) -> None:
        self._spy = Path(spy)
        self._talks = streams is Streams.LIVE

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        words = plain_text(work.asked[0].parts)
        if not words.endswith("-wish"):
            yield Text("What?")
            return
        chat = words.removeprefix("I am ").removesuffix("-wish")
        if self._talks:
            yield Text("Let me see. ")
        answer = await work.ask(f"May {chat}?", ("yes", "no"))
        with self._spy.open("a") as spy:
            spy.write(f"{chat}\t{answer}\n")
        yield Text(f"{'Did' if answer == 'yes' else 'Left'} {chat}.")


def approved(spy: Path) -> Agent:
    """An agent of pydantic-ai whose tool must be approved; it writes down when its model is asked and what is done."""

    def note(line: str) -> None:
        with spy.open("a") as file:
            file.write(f"{line}\n")

    async def model(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        note("asked")
        last = messages[-1].parts[-1]
        if isinstance(last, ToolReturnPart):
            yield f"It came to: {last.content}"
        else:
            yield "Let me see. "
            yield {0: DeltaToolCall("remove", '{"path": "old.txt"}', tool_call_id=os.urandom(4).hex())}

    def remove(path: str) -> str:
        note(f"removed {path}")
        return f"{path} is gone"

    tools = [PydanticTool(remove, requires_approval=True)]
    return as_agent(Pydantic(FunctionModel(stream_function=model), tools=tools))


class Spends:
    """An agent that reserves a call, writes down that it makes it, and tells what it took."""

    BOUND = 100
    """Tokens that a call takes at most."""

    def __init__(self, pace: float, spy: str) -> None:
        self._pace = pace
        self._spy = Path(spy)

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        await work.budget.reserve(self.BOUND)
        with self._spy.open("a") as spy:
            spy.write(f"{work.session}\n")
        await asyncio.sleep(self._pace)
        # Half of the calls take all that they may.
        yield Usage("toy", random.choice((self.BOUND, random.randint(1, self.BOUND))))
        yield Text("Spent.")


class Delegates:
    """An agent that gives each message to a child as a task, and asks another child about it and waits.

    It has no memory of an earlier attempt: it never looks at the journal, and gives every call a new id.
    """

    WAIT = 0.1
    """Seconds: about as long as an answer takes, so that waits end at any moment."""

    def __init__(self, pace: float) -> None:
        self._pace = pace

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        said = [plain_text(draft.parts) for draft in work.asked]
        first = said[0].split()[0]
        if first in {"task", "ask"}:
            await asyncio.sleep(random.expovariate(1 / max(self._pace, 0.001)))
            yield Text(f"{'found' if first == 'task' else 'echo'} {said[0].removeprefix(first).strip()}")
        elif first == "From":
            yield Text(f"Result: {said[0].splitlines()[-1]}")
        else:
            async for event in self._delegate(work, said):
                yield event

    async def _delegate(self, work: Work, said: list[str]) -> AsyncIterator[Event]:
        calls = [ToolCall("", "sessions_spawn", {"task": "task kid", "mode": "session", "label": "kid"})]
        for words in said:
            calls.append(ToolCall("", "sessions_spawn", {"task": f"task {words}", "mode": "run"}))
            about = {"message": f"ask {words}", "label": "kid", "wait": self.WAIT}
            calls.append(ToolCall("", "sessions_send", about))
        told = []
        for call in calls:
            fresh = ToolCall(os.urandom(8).hex(), call.name, call.arguments)
            yield fresh
            result = await work.tools.call(fresh)
            yield result
            if isinstance(result.content, dict) and "reply" in result.content:
                told.append(result.content["reply"])
        yield Text(" + ".join(f"You said: {words}" for words in said) + "".join(f" ({reply})" for reply in told))


def sent(work: Work) -> str:
    """What a model would be sent of a turn, by role."""
    items: tuple[Draft | Entry, ...] = (*work.transcript, *work.asked)
    said = [[item.author.role, words_of(item, voices)] for item, voices in by_then(items, work.voices)]
    return json.dumps({"context": work.context, "voices": work.voices, "said": said})


def _probe(plan: Plan) -> Probe:
    left = plan.dies_after

    def probe(point: Point) -> None:
        nonlocal left
        if point is plan.dies_at:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return probe


def _refuse_if(full: Path) -> None:
    if full.exists():
        raise apsw.FullError("this disk is full")


async def _driver(plan: Plan) -> Driver:
    if plan.where.startswith("postgresql://"):
        return await Postgres.open(plan.where, probe=_probe(plan), steps=[*migrations(POSTGRES), *LATER[: plan.newer]])
    disk = Disk()
    disk.guard = lambda _: _refuse_if(Path(plan.full)) if plan.full else None
    steps = [*migrations(SQLITE), *LATER[: plan.newer]]
    return await Sqlite.open(Path(plan.where), probe=_probe(plan), vfs=disk.name, steps=steps)


def _agent(plan: Plan) -> Agent:
    match plan.mind:
        case Mind.REPEATS:
            return Repeats(plan.pace, plan.spy, plan.wire)
        case Mind.DELEGATES:
            return Delegates(plan.pace)
        case Mind.ASKS:
            return Asks(plan.spy, plan.streams)
        case Mind.SPENDS:
            return Spends(plan.pace, plan.spy)
        case Mind.APPROVED:
            return approved(Path(plan.spy))
        case Mind.ACP:
            return AcpAgent(program(Path(plan.spy)))


async def run(plan: Plan) -> None:
    """Run a gateway until the process is ended."""
    live = plan.streams is Streams.LIVE
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    store = Store(await _driver(plan))
    keys = HttpAccount(
        Secret(SECRET), plan.callback, opens_threads=plan.threads, edits=plan.sending is Sending.EDIT or live
    )
    adapter = keys.adapter(ACCOUNT, Shelf())
    adapter.sending = plan.sending
    settings = GatewaySettings(
        limits=UNBOUNDED,
        accounts={("http", ACCOUNT): AccountSettings(public=True, streams=plan.streams)},
        handoff=Patience(plan.patience),
        lease=plan.lease,
        poll=plan.lease / 2,
        grace=2.0,
        turn_silence=plan.silence,
        deaths=plan.deaths,
        redaction=plan.redaction,
        routing=Settings(
            resets=Policies(Policy(When.IDLE, plan.idle)) if plan.idle else Policies(),
            limits=Limits(children=10_000, budget=10_000),
        ),
        ending=plan.ending,
        sweep=plan.lease / 10,
        questions=QuestionSettings(plan.deadline),
        budget=Budgets(day=Amount(plan.tokens or None, None, plan.turns or None))
        if plan.tokens or plan.turns
        else Budgets(),
    )
    listener = Listener("127.0.0.1", plan.port)
    gateway = Gateway(store, _agent(plan), [adapter], settings, probe=_probe(plan))
    async with store, gateway, serving(make_app(gateway, knows=lambda _: True), listener):
        await ended.wait()
    await adapter.close()


def _main(plan: Plan) -> None:
    # The fork server hands its own way of ending on; a gateway ends by signals.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if plan.log:
        logs.start(Path(plan.log).open("a", buffering=1), [Secret(SECRET)])  # noqa: SIM115 -- as long as the process
    with planted(*plan.bug.patches):
        asyncio.run(run(plan))


def start(plan: Plan) -> BaseProcess:
    """Start a gateway as a process of its own."""
    return forge.start(_main, plan)
