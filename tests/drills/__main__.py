"""The drills, at full length: `make drill`, or `python -m tests.drills NAME... [--minutes M] [--seed N]`.

Each runs in rounds until its count is reached or its time is over. What was counted is kept, so the next run goes on
from there, unless the code has changed: counts belong to what was drilled. A round that finds something wrong is
printed with its seed, and the run goes on with the next drill.
"""

import argparse
import asyncio
import fcntl
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from segue.core.contracts.probes import Point
from segue.core.messages import Sending
from segue.core.settings import GatewaySettings, Streams
from segue.core.values import Live
from tests.drills import (
    backlog,
    bindings,
    bombs,
    budgets,
    callers,
    children,
    crowds,
    days,
    descriptors,
    disks,
    editors,
    everywhere,
    failing,
    forgeries,
    forgetting,
    handoffs,
    hostile_input,
    hostile_lanes,
    hostile_names,
    kills,
    labels,
    overload,
    power,
    questions,
    readers,
    rights,
    schedules,
    slowness,
    soak,
    unheard,
    zombies,
)
from tests.drills.forgers import FORGERS
from tests.postgres import ensure, folder

Fresh = Callable[[], str]
"""Makes a new database: what was said in one is a duplicate there."""


_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where files outlive a process and syncing takes no time: whoever looks at disks has one of their own."""


class Drill(Live, frozen=True):
    """A drill: how far it is to go, what one round of it counts, and the round itself."""

    target: int
    unit: str
    step: int
    round: Callable[[Fresh, int], str]
    """Given new databases and a seed; returns what is wrong, empty if nothing is."""


def _kills(fresh: Fresh, seed: int) -> str:
    # A tenth of the rounds has the lease that Segue is shipped with: fewer kills, since each takeover takes longer.
    shipped = {"kills": 10, "lease": GatewaySettings().lease, "patience": 30.0} if seed % 10 == 0 else {"kills": 100}
    report = asyncio.run(kills.run(fresh(), seed=seed, **shipped))
    return "" if report.clean else repr(report)


def _labels(fresh: Fresh, seed: int) -> str:
    for point in labels.POINTS:
        sending = Sending.EDIT if point is Point.SEND_PLACED or seed % 2 else Sending.KEYED
        streams = Streams.LIVE if point.startswith("stream") else Streams.WHOLE
        report = asyncio.run(labels.run(fresh(), point, 2, seed, sending, streams))
        if not report.clean:
            return f"{point}: {report!r}"
    return ""


def _children(fresh: Fresh, seed: int) -> str:
    for point in children.LABELS:
        report = asyncio.run(children.run(fresh(), point, 4, seed))
        if not report.clean:
            return f"{point}: {report!r}"
    return ""


def _handoffs(fresh: Fresh, seed: int) -> str:
    found = asyncio.run(handoffs.run(fresh(), 10, seed))
    return "\n".join(found.wrong)


def _zombies(fresh: Fresh, seed: int) -> str:
    found = asyncio.run(zombies.run(fresh(), 10, seed))
    return "" if found.clean else repr(found)


def _schedules(fresh: Fresh, seed: int) -> str:
    found = asyncio.run(schedules.run(fresh(), 10, seed))
    return "" if found.clean else repr(found)


def _everything_fails(_fresh: Fresh, _seed: int) -> str:
    return "\n".join(failing.run())


def _callers(_fresh: Fresh, _seed: int) -> str:
    return "\n".join(asyncio.run(callers.run(100)))


def _days(fresh: Fresh, seed: int) -> str:
    return "\n".join(asyncio.run(days.run(fresh(), 9 + seed % 9000)))


def _descriptors(fresh: Fresh, _seed: int) -> str:
    return "\n".join(descriptors.run(fresh(), 200))


def _lanes(_fresh: Fresh, seed: int) -> str:
    return "\n".join(map(ascii, hostile_lanes.run(seed, 100_000)))


def _bombs(_fresh: Fresh, seed: int) -> str:
    return "\n".join(bombs.run(bombs.PATTERNS[seed % len(bombs.PATTERNS) :][:1]))


def _rights(fresh: Fresh, seed: int) -> str:
    found = asyncio.run(rights.approvals(seed, 5_000))
    return "\n".join([*found, *asyncio.run(rights.inheritance(fresh(), seed, 50))])


def _names(_fresh: Fresh, seed: int) -> str:
    return "\n".join(hostile_names.run(seed, 10_000))


def _power(_fresh: Fresh, seed: int) -> str:
    return "\n".join(power.run(500, seed).wrong)


def _bindings(fresh: Fresh, seed: int) -> str:
    return "\n".join(asyncio.run(bindings.run(fresh(), 1_000, seed)).wrong)


def _forgeries(fresh: Fresh, seed: int) -> str:
    folder = Path(fresh()).with_suffix("")
    folder.mkdir()
    found = asyncio.run(forgeries.run(folder, 20_000, seed))
    beside = asyncio.run(forgeries.over_the_socket(fresh(), 40, seed))
    wrong = [*found.wrong, *beside.wrong]
    for proof in FORGERS if not wrong else ():
        _count(f"forgeries: {proof}", 20_000)
    return "\n".join(wrong)


def _forgetting(fresh: Fresh, seed: int) -> str:
    with tempfile.TemporaryDirectory(prefix="segue-drill-") as scratch:
        return "\n".join(asyncio.run(forgetting.run(fresh(), Path(scratch), 50, seed)))


def _disks(_fresh: Fresh, seed: int) -> str:
    return "\n".join(disks.run(20, seed).wrong)


def _everywhere(_fresh: Fresh, seed: int) -> str:
    try:
        found = asyncio.run(everywhere.run(300.0, seed))
    except pytest.skip.Exception as missing:
        return str(missing)
    _say(f"everywhere: {found}")
    return "\n".join(found.wrong)


def _editors(_fresh: Fresh, seed: int) -> str:
    try:
        found = asyncio.run(editors.run(50, 30, seed))
    except pytest.skip.Exception as missing:
        return str(missing)
    _say(f"editors: {found}")
    return "\n".join(found.wrong)


def _backlog(fresh: Fresh, _seed: int) -> str:
    return "\n".join(asyncio.run(backlog.run(fresh(), 10_000)))


def _properties(_fresh: Fresh, _seed: int) -> str:
    tests = ["tests/core", "tests/changes/test_machine.py", "tests/changes/test_races.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--hypothesis-profile=drill", *tests]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode else ""


def _cases(_fresh: Fresh, _seed: int) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal", "--full"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode else ""


def _readers(fresh: Fresh, seed: int) -> str:
    return "\n".join(asyncio.run(readers.run(fresh(), 1_000, seed)).wrong)


def _questions(fresh: Fresh, seed: int) -> str:
    # The lease is long enough for a machine on which other drills run: whoever loses it begins all turns again.
    more: dict[str, Any] = {"streams": Streams.LIVE if seed % 2 else Streams.WHOLE, "lease": 2.0}
    found = asyncio.run(questions.run(fresh(), 400, seed, **more)).wrong
    late = asyncio.run(questions.run(fresh(), 100, seed, kills=3, deadline=2.0, **more)).wrong
    return "\n".join([*found, *late])


def _budgets(fresh: Fresh, seed: int) -> str:
    found = [asyncio.run(budgets.run(fresh(), 125, seed, turns, tokens)) for turns, tokens in ((50, 0), (0, 5_000))]
    return "\n".join(wrong for rush in found for wrong in rush.wrong)


def _hostile_input(fresh: Fresh, seed: int) -> str:
    found = asyncio.run(hostile_input.run(fresh(), 10_000, seed))
    for name, cases in found.cases.items():
        _count(f"hostile-input: {name}", cases)
    return "; ".join(found.wrong)


def _crowds(fresh: Fresh, _seed: int) -> str:
    found = asyncio.run(crowds.run(fresh(), 200))
    return "; ".join([*found, *asyncio.run(crowds.hanging(fresh(), 100, slow=5.0))])


def _unheard(fresh: Fresh, seed: int) -> str:
    return "; ".join(asyncio.run(unheard.run(fresh(), 100, seed)))


def _overload(fresh: Fresh, seed: int) -> str:
    found = asyncio.run(overload.run(fresh(), 60.0, seed))
    _say(f"overload: {found}")
    return "; ".join([*found.wrong, *found.slow])


def _soak(fresh: Fresh, _seed: int) -> str:
    found = asyncio.run(soak.run(fresh(), 20_000))
    _say(f"soak: {found.before.memory:,} bytes after 10,000 turns, {found.after.memory:,} after 20,000")
    return "\n".join(found.wrong)


def _slowness(fresh: Fresh, _seed: int) -> str:
    runs = [slowness.run(fresh(), [5.0, 20.0, 60.0], 5.0, sending) for sending in (Sending.KEYED, Sending.EDIT)]

    async def both() -> list[list[str]]:
        return await asyncio.gather(*runs)

    return "\n".join(wrong for found in asyncio.run(both()) for wrong in found)


DRILLS = {
    "kills": Drill(10_000, "kills on SQLite", 100, _kills),
    "kills-postgres": Drill(10_000, "kills on PostgreSQL", 100, _kills),
    "labels": Drill(200, "deaths at every label on SQLite", 2, _labels),
    "labels-postgres": Drill(200, "deaths at every label on PostgreSQL", 2, _labels),
    "children": Drill(200, "deaths at every label over children on SQLite", 4, _children),
    "children-postgres": Drill(200, "deaths at every label over children on PostgreSQL", 4, _children),
    "handoffs": Drill(1_000, "raced handoffs on SQLite", 50, _handoffs),
    "handoffs-postgres": Drill(1_000, "raced handoffs on PostgreSQL", 50, _handoffs),
    "zombies-postgres": Drill(1_000, "freezes of four turns each", 10, _zombies),
    "schedules": Drill(1_000, "kills when work is due on SQLite", 10, _schedules),
    "schedules-postgres": Drill(1_000, "kills when work is due on PostgreSQL", 10, _schedules),
    "bindings": Drill(100_000, "operations on bindings by four processes on SQLite", 1_000, _bindings),
    "bindings-postgres": Drill(100_000, "operations on bindings by four processes on PostgreSQL", 1_000, _bindings),
    "power": Drill(20_000, "power cuts on SQLite", 500, _power),
    "disks": Drill(1_000, "disks that fail, hang, fill up, are locked or damaged", 20, _disks),
    "forgeries": Drill(1_000_000, "forged and replayed calls for each proof of a webhook", 20_000, _forgeries),
    "forgetting": Drill(1_000, "canaries forgotten on SQLite", 50, _forgetting),
    "forgetting-postgres": Drill(1_000, "canaries forgotten on PostgreSQL", 50, _forgetting),
    "lanes": Drill(10_000_000, "hostile lanes", 100_000, _lanes),
    "bombs": Drill(len(bombs.PATTERNS), "bracket bombs on each platform", 1, _bombs),
    "rights": Drill(1_000, "families of children of limited accounts, and calls that look alike", 50, _rights),
    "names": Drill(100_000, "hostile names and bodies", 10_000, _names),
    "backlog": Drill(100_000, "messages that waited on SQLite", 10_000, _backlog),
    "backlog-postgres": Drill(100_000, "messages that waited on PostgreSQL", 10_000, _backlog),
    "properties": Drill(20_000, "new examples of each property, and every pause of every race", 2_000, _properties),
    "cases": Drill(1, "run of the cases that `make test` leaves out", 1, _cases),
    "questions": Drill(10_000, "questions, with answers that race and kills, on SQLite", 500, _questions),
    "questions-postgres": Drill(10_000, "questions, with answers that race and kills, on PostgreSQL", 500, _questions),
    "budgets": Drill(1_000, "tries at one budget by two gateways on SQLite", 250, _budgets),
    "budgets-postgres": Drill(1_000, "tries at one budget by two gateways on PostgreSQL", 250, _budgets),
    "readers": Drill(100_000, "steps of people whose words keep their readers", 1_000, _readers),
    "hostile-input": Drill(1_000_000, "hostile commands, tool calls and payloads", 10_000, _hostile_input),
    "hostile-input-postgres": Drill(20_000, "hostile commands, tool calls and payloads", 10_000, _hostile_input),
    "crowds": Drill(20, "bursts of 200 answers, and 100 hanging calls, on SQLite", 1, _crowds),
    "crowds-postgres": Drill(20, "bursts of 200 answers, and 100 hanging calls, on PostgreSQL", 1, _crowds),
    "unheard": Drill(10_000, "messages while commits aren't heard of on SQLite", 400, _unheard),
    "unheard-postgres": Drill(10_000, "messages while commits aren't heard of on PostgreSQL", 400, _unheard),
    "overload": Drill(10, "minutes in which twice as much came in as could be done", 1, _overload),
    "everything-fails": Drill(
        1, "round in which each verb, change of a loop and file operation failed", 1, _everything_fails
    ),
    "callers": Drill(10, "crowds of 300 callers who send or read nothing, of each kind", 1, _callers),
    "days": Drill(100, "starts with a clock that is days ahead on SQLite", 1, _days),
    "days-postgres": Drill(100, "starts with a clock that is days ahead on PostgreSQL", 1, _days),
    "descriptors": Drill(1_000, "messages while no file descriptor was free", 200, _descriptors),
    "slowness": Drill(6, "calls of 5, 20 and 60 seconds under the shipped lease on SQLite", 6, _slowness),
    "slowness-postgres": Drill(6, "calls of 5, 20 and 60 seconds under the shipped lease on PostgreSQL", 6, _slowness),
    "soak": Drill(20_000, "turns through one gateway, of which nothing is kept", 20_000, _soak),
    "editors": Drill(1_000, "prompts in two editors, on Telegram and the page at once, with kills", 200, _editors),
    "everywhere": Drill(5, "minutes on four platforms and the page at once, with outages", 5, _everywhere),
}


@contextmanager
def _database(name: str) -> Iterator[Fresh]:
    """New databases, as many as there are asked for."""
    if name.endswith("postgres"):
        with folder() as home:
            server = ensure(home)
            yield lambda: server.dsn(server.create_database())
    else:
        with tempfile.TemporaryDirectory(prefix="segue-drill-", dir=_MEMORY) as scratch:
            yield lambda: str(Path(scratch) / f"{time.monotonic_ns()}.db")


def _kept() -> Path:
    cache = Path(os.environ.get("SEGUE_CACHE") or Path.home() / ".cache" / "segue")
    cache.mkdir(parents=True, exist_ok=True)
    return cache / "drills.json"


@contextmanager
def _counts() -> Iterator[dict[str, int]]:
    """What drills have counted for this code, to be looked at and added to; others may count at the same time."""
    with _kept().open("a+") as kept:
        fcntl.flock(kept, fcntl.LOCK_EX)
        kept.seek(0)
        known: dict[str, Any] = json.loads(kept.read() or "{}")
        counts: dict[str, int] = known["counts"] if known.get("code") == _code() else {}
        before = dict(counts)
        yield counts
        if counts != before:
            kept.truncate(0)
            kept.write(json.dumps({"code": _code(), "counts": counts}))


def _count(name: str, more: int) -> int:
    """Add to what a drill has counted."""
    with _counts() as counts:
        if more:
            counts[name] = counts.get(name, 0) + more
        return counts.get(name, 0)


def _parts(name: str) -> dict[str, int]:
    """What a drill has counted of each of its parts."""
    with _counts() as counts:
        return {part.removeprefix(f"{name}: "): cases for part, cases in counts.items() if part.startswith(f"{name}: ")}


@cache
def _code() -> str:
    """Names the code that is drilled, by its content."""
    here, digest = Path(__file__).parent, hashlib.sha256()
    for root in (here.parents[1] / "src", here):
        for file in sorted(root.rglob("*.*")):
            if file.is_file() and file.suffix in (".py", ".sql"):
                digest.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Run drills; the exit code says whether all was well."""
    parser = argparse.ArgumentParser(prog="python -m tests.drills", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(DRILLS))
    parser.add_argument("--minutes", type=float, default=8.0, help="for each drill")
    parser.add_argument("--seed", type=int, default=None, help="repeat one round")
    options = parser.parse_args()
    failed = 0
    for name in options.names or DRILLS:
        drill, counted = DRILLS[name], _count(name, 0)
        deadline, wrong = time.monotonic() + options.minutes * 60, ""
        with _database(name) as fresh:
            while counted < drill.target and time.monotonic() < deadline and not wrong:
                seed = options.seed if options.seed is not None else time.time_ns() % 1_000_000
                wrong = drill.round(fresh, seed)
                if wrong:
                    _say(f"{name}: seed {seed}: {wrong}")
                    failed = 1
                else:
                    counted = _count(name, drill.step)
        _say(f"{name}: {counted:,} of {drill.target:,} {drill.unit}, {'something' if wrong else 'nothing'} wrong")
        for part, cases in _parts(name).items():
            _say(f"  {part}: {cases:,}")
    _say(f"counted for the code {_code()}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
