"""Bindings under four processes that are killed and paused: what each of them saw fits one order for every lane.

Everybody talks, starts anew, resumes, lets go, takes back and looks, in the same few lanes of one database. Each writes
down when it called and what it got. Per lane, the notes of all are one history, which must be linearizable.
"""

import asyncio
import json
import os
import random
import signal
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from segue.changes.accept import Fresh, FrontDoor, Queued
from segue.changes.sessions import moves
from segue.changes.sessions.moves import Moving
from segue.core.lanes import Address, Identity, Kind, Lane, Person, Place
from segue.core.messages import Arrival, Speaker, Text
from segue.core.moves import Release, Renew, Resume
from segue.core.settings import GatewaySettings
from segue.core.values import PersonId, SessionId, Value
from segue.errors import OutcomeUnknown, Refusal, Refused, StoreError
from segue.store import Store, fresh_ids, open_driver
from tests.changes.invariants import violations
from tests.changes.world import Engine, raw_sql
from tests.drills.linear import Operation, unordered
from tests.drills.planting import Bug, planted
from tests.forge import kill, start

PROCESSES = 4
VOICES = 2
"""Who act at the same time in each process."""
LANES = 3
KILLS = 6
"""At most, in one history: what never came back may have happened at any time since, which the search has to try."""
_ACTS = ("talk", "talk", "new", "resume", "resume", "release", "undo", "look", "look")
_DOOR = FrontDoor(GatewaySettings())
_SPEAKER = Speaker(Identity("wall", "alpha", "ann"), "Ann")

Moves = tuple[tuple[str, str | None, str | None], ...]
State = tuple[str | None, Moves]
"""What a lane speaks to, and the moves that may yet be taken back: each with what was before and after it."""


class Found(Value, frozen=True):
    """What came of it."""

    operations: int
    killed: int
    wrong: list[str]


class Part(Value, frozen=True):
    """What one process is to do."""

    where: str
    notes: str
    ends: str
    """A file; once it exists, it is over."""
    person: str
    seed: int
    bug: Bug


async def run(where: str, operations: int, seed: int, bug: Bug = Bug.NONE) -> Found:
    """Let processes act until so many operations came back; then compare their notes."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="segue-bindings-") as scratch:
        ends = Path(scratch) / "ends"
        person = await _set_up(where)

        def begin() -> BaseProcess:
            notes = Path(scratch) / f"{time.monotonic_ns()}.notes"
            part = Part(where, str(notes), str(ends), person, dice.randrange(1 << 30), bug)
            return start(_main, part)

        acting = [await asyncio.to_thread(begin) for _ in range(PROCESSES)]
        killed = 0
        try:
            deadline = time.monotonic() + 300
            while _returned(Path(scratch)) < operations and time.monotonic() < deadline:
                await asyncio.sleep(dice.uniform(0.02, 0.4))
                one = dice.randrange(PROCESSES)
                if killed < KILLS and dice.random() < 0.3:
                    await asyncio.to_thread(kill, acting[one])
                    killed += 1
                    acting[one] = await asyncio.to_thread(begin)
                else:
                    await _pause(acting[one], dice.uniform(0.01, 0.2))
            ends.touch()
            await asyncio.gather(*(asyncio.to_thread(process.join, 30) for process in acting))
        finally:
            for process in acting:
                await asyncio.to_thread(kill, process)
        wrong, count = _compare(Path(scratch))
        if count < operations:
            wrong.append(f"only {count} of {operations} operations came back")
    raw = await raw_sql(Engine.POSTGRES if where.startswith("postgresql://") else Engine.SQLITE, where)
    try:
        wrong += await violations(raw)
    finally:
        await raw.close()
    return Found(count, killed, wrong)


async def _pause(process: BaseProcess, seconds: float) -> None:
    assert process.pid is not None
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            os.kill(process.pid, signal.SIGCONT)


def _place(lane: int) -> Place:
    return Place(Address("wall", "alpha", chat=f"chat-{lane}"), Kind.DM)


async def _set_up(where: str) -> str:
    """Make the database, and the lanes in which nobody has said anything."""
    async with Store(await open_driver(where)) as store:
        person = await store.person(_SPEAKER.identity, _SPEAKER.name)
        for lane in range(LANES):
            await store.lane(_place(lane), person)
        return person.id


# One of the processes


def _main(part: Part) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with planted(*part.bug.patches):
        asyncio.run(_act(part))


async def _act(part: Part) -> None:
    notes = os.open(part.notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    async with Store(await open_driver(part.where)) as store:
        dice = random.Random(part.seed)
        known: list[str] = []
        voices = [_Voice(store, part, notes, n, random.Random(dice.random()), known) for n in range(VOICES)]
        await asyncio.gather(*(voice.act() for voice in voices))
    os.close(notes)


class _Voice:
    """Does one thing after the other, and notes each before and after."""

    def __init__(
        self, store: Store, part: Part, notes: int, number: int, dice: random.Random, known: list[str]
    ) -> None:
        self._store = store
        self._person = Person(PersonId(part.person), _SPEAKER.name, 0.0)
        self._ends = Path(part.ends)
        self._notes = notes
        self._number = number
        self._dice = dice
        self._ids = fresh_ids(time.time)
        self._known = known
        """Sessions that there are."""
        self._moves: dict[int, list[str]] = defaultdict(list)

    async def act(self) -> None:
        n = 0
        while not self._ends.exists():
            n += 1
            number = self._dice.randrange(LANES)
            do = self._dice.choice(_ACTS)
            of = self._of(do, number)
            if of is None:
                continue
            key = f"{self._number}/{n}"
            self._note({"key": key, "lane": number, "do": do, "of": of, "at": time.monotonic_ns()})
            try:
                got = await self._do(do, number, of)
            except OutcomeUnknown:
                continue  # as one that never came back
            except Refused as refused:
                got = refused.why.name
            except StoreError as error:
                got = ["nothing", type(error).__name__]
            self._note({"key": key, "got": got, "at": time.monotonic_ns()})

    def _note(self, line: dict[str, Any]) -> None:
        os.write(self._notes, json.dumps(line).encode() + b"\n")

    def _of(self, do: str, number: int) -> list[str] | None:
        """What an act is about; None if there is nothing yet."""
        match do:
            case "talk" | "new":
                return [self._ids(), self._ids()]
            case "resume":
                return [self._ids(), self._dice.choice(self._known[-6:])] if self._known else None
            case "undo":
                return [self._dice.choice(self._moves[number][-2:])] if self._moves[number] else None
            case "release":
                return [self._ids()]
            case _:
                return []

    async def _do(self, do: str, number: int, of: list[str]) -> Any:
        lane = Lane(_place(number).address)
        driver, limits, at = self._store.driver, self._store._limits, time.time()
        actor = self._person.id
        match do:
            case "talk":
                arrival = Arrival(_place(number), of[0], _SPEAKER, (Text("hello"),), at)
                fresh = Fresh(PersonId(self._ids()), SessionId(of[1]), of[0], (self._ids(),), of[0], at)
                queued = await driver.write(_DOOR.accept, arrival, fresh, None)
                assert isinstance(queued, Queued)
                self._known.append(queued.session)
                return queued.session
            case "look":
                bound = await self._store.bound(lane)
                return bound.id if bound else None
            case "undo":
                return _made(await self._store.undo_move(of[0], self._person))
            case "new":
                move: Renew | Resume | Release = Renew(lane, SessionId(of[1]))
            case "resume":
                move = Resume(lane, SessionId(of[1]))
            case _:
                move = Release(lane)
        made = _made(await driver.write(moves.make, move, actor, limits, of[0], at))
        self._moves[number].append(of[0])
        if do == "new":
            self._known.append(of[1])
        return made


def _made(moving: Moving) -> list[str | None]:
    [made] = moving.made
    return [made.before, made.after]


# What all of them saw


def _returned(folder: Path) -> int:
    return sum(notes.read_bytes().count(b'"got"') for notes in folder.glob("*.notes"))


def _compare(folder: Path) -> tuple[list[str], int]:
    """What no order explains, and how many operations came back."""
    histories: dict[int, list[Operation]] = defaultdict(list)
    count = 0
    for notes in folder.glob("*.notes"):
        calls: dict[str, dict[str, Any]] = {}
        for line in notes.read_text().splitlines():
            note = json.loads(line)
            if "got" not in note:
                calls[note["key"]] = note
                continue
            count += 1
            call = calls.pop(note["key"])
            if isinstance(note["got"], list) and note["got"][0] == "nothing":
                continue  # refused by the database: it never happened
            histories[call["lane"]].append(
                Operation(call["do"], tuple(call["of"]), call["at"], note["at"], _plain(note["got"]))
            )
        for call in calls.values():
            histories[call["lane"]].append(Operation(call["do"], tuple(call["of"]), call["at"]))
    wrong = []
    for lane, history in histories.items():
        if left := disagree(history):
            wrong.append(f"lane {lane}: no order explains these of {len(history)}: {left}")
    return wrong, count


def _plain(got: Any) -> Any:
    return tuple(got) if isinstance(got, list) else got


def disagree(history: list[Operation]) -> list[Operation]:
    """The operations of one lane that no order explains."""
    undone = {op.of[0] for op in history if op.do == "undo"}

    def step(state: State, op: Operation) -> tuple[Any, State]:
        return _step(state, op, undone)

    start: State = None, ()
    return unordered(history, start, step)


def _step(state: State, op: Operation, undone: set[str]) -> tuple[Any, State]:
    """What an operation does to a lane, by the rules: a register, and moves that can be taken back."""
    bound, made = state
    match op.do:
        case "look":
            return bound, state
        case "talk":
            session = bound or op.of[1]
            return session, (session, made)
        case "undo":
            return _undo(state, op.of[0])
        case "new" | "resume":
            after: str | None = op.of[1]
            if op.do == "resume" and bound == after:
                return Refusal.ALREADY_THERE.name, state
        case _:
            after = None
            if bound is None:
                return Refusal.NOTHING_BOUND.name, state
    kept = (*made, (op.of[0], bound, after)) if op.of[0] in undone else made
    return (bound, after), (after, tuple(sorted(kept, key=lambda move: move[0])))


def _undo(state: State, target: str) -> tuple[Any, State]:
    bound, made = state
    for move, before, after in made:
        if move == target:
            if bound != after:
                return Refusal.MOVED_SINCE.name, state
            return (bound, before), (before, tuple(each for each in made if each[0] != target))
    return Refusal.NOTHING_TO_UNDO.name, state
