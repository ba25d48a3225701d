"""A process that starts: until its first message is taken in, what it holds in memory, what it imports."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypedDict

from bench.databases import Databases
from bench.table import Line, Target, milliseconds

_TIMES = 9


class Started(TypedDict):
    """What a fresh process tells about itself."""

    routed: float
    """Seconds from before it opened the database to its first message, durable."""
    memory: int
    """Bytes that it holds then."""


async def cold(databases: Databases) -> AsyncIterator[Line]:
    """From opening a database to the first message."""
    scale = databases.scale
    paths = {sessions: await databases.segue(sessions) for sessions in (scale.few, scale.many)}
    raws = {sessions: databases.raw(sessions) for sessions in (scale.few, scale.many)}
    ours: dict[int, list[Started]] = {sessions: [] for sessions in paths}
    theirs: dict[int, list[Started]] = {sessions: [] for sessions in paths}
    whole: list[float] = []
    for _ in range(_TIMES):
        for sessions, path in paths.items():
            began = time.perf_counter()
            ours[sessions].append(_start("segue", path, sessions))
            if sessions == scale.many:
                whole.append(time.perf_counter() - began)
            theirs[sessions].append(_start("raw", raws[sessions], sessions))
    for sessions in paths:
        routed, raw = (statistics.median(s["routed"] for s in found[sessions]) for found in (ours, theirs))
        what = f"open to first message taken in, {sessions:,} sessions"
        beside = f"raw SQLite {milliseconds(raw)}"
        yield Line("cold", what, milliseconds(routed), beside, routed / raw, Target("<", 100, "ms"), routed * 1000)
    yield Line("cold", f"the whole process, {scale.many:,} sessions", milliseconds(statistics.median(whole)))
    memory = {sessions: statistics.median(s["memory"] for s in ours[sessions]) for sessions in paths}
    for sessions in paths:
        yield Line("cold", f"memory after the first message, {sessions:,} sessions", _megabytes(memory[sessions]))
    grown = memory[scale.many] / memory[scale.few]
    yield Line("cold", f"memory: {scale.many:,} / {scale.few}", f"{grown:.2f}x", "", None, Target("<=", 1.2), grown)


async def imports(_: Databases) -> AsyncIterator[Line]:
    """Importing Segue in a fresh process."""
    p50 = statistics.median(_import() for _ in range(_TIMES))
    yield Line("import", "import segue", milliseconds(p50), "", None, Target("<", 150, "ms"), p50 * 1000)


def _start(who: str, path: Path, sessions: int) -> Started:
    command = [sys.executable, "-m", "bench.first", who, str(path), str(sessions)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    said = subprocess.run(command, check=True, capture_output=True, env=environment).stdout
    started: Started = json.loads(said)
    return started


def _import() -> float:
    code = "import time; began = time.perf_counter(); import segue; print(time.perf_counter() - began)"
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout)


def _megabytes(count: float) -> str:
    return f"{count / 1e6:.1f} MB"
