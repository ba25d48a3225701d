"""Runs the rows that are named, or all of them, and writes the table down."""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

from bench import (
    agents,
    callbacks,
    coding_agents,
    crowded,
    end_to_end,
    files,
    gateway,
    growth,
    handoffs,
    markup,
    servers,
    start,
    taps,
    turns,
)
from bench.databases import Databases
from bench.peers import rows
from bench.scale import FULL, QUICK
from bench.skipped import Skipped
from bench.table import Line, condition, head, machine, markdown, shown

_RESULTS = Path(__file__).parent / "results"
_ROWS: dict[str, Callable[[Databases], AsyncIterator[Line]]] = {
    "turn": turns.turn,
    "together": turns.together,
    "syncs": turns.syncs,
    "route": growth.route,
    "list": growth.list_newest,
    "search": growth.search,
    "undo": growth.undo,
    "rebind": growth.rebind,
    "fork": growth.fork,
    "crowded": crowded.crowded,
    "cold": start.cold,
    "import": start.imports,
    "agents": agents.agents,
    "acp": coding_agents.acp,
    "postgres": servers.postgres,
    "files": files.large_files,
    "messages": end_to_end.messages,
    "synced": end_to_end.synced,
    "memory": end_to_end.memory,
    "long": end_to_end.long_sessions,
    "overhead": gateway.overhead,
    "handoff": handoffs.handoff,
    "bombs": markup.bombs,
    "tap": taps.tap,
    "callback": callbacks.callback,
    "takeover": gateway.takeover,
    "idle": gateway.idle,
    "peers": rows.peers,
}
_LONG = {"peers"}
"""Rows that a quick run leaves out unless they are named."""


async def measure(databases: Databases, names: list[str]) -> tuple[list[Line], list[str]]:
    lines: list[Line] = []
    notes: list[str] = []
    print(head(), flush=True)
    for name in names:
        try:
            async for line in _ROWS[name](databases):
                lines.append(line)
                print(shown(line), flush=True)
        except Skipped as reason:
            notes.append(f"{name}: skipped, {reason}")
            print(notes[-1], flush=True)
    return lines, notes


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Speed, as ratios measured in one run.")
    parser.add_argument("rows", nargs="*", choices=[[], *_ROWS], metavar="ROW", help=", ".join(_ROWS))
    parser.add_argument("--quick", action="store_true", help="smaller numbers, without the peers: about a minute")
    chosen = parser.parse_args()
    scale = QUICK if chosen.quick else FULL
    names = chosen.rows or [name for name in _ROWS if not (chosen.quick and name in _LONG)]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="segue-bench-") as folder:
        databases = Databases(Path(folder), scale, lambda said: print(f"({said})", file=sys.stderr, flush=True))
        before = condition(databases.folder)
        lines, notes = asyncio.run(measure(databases, names))
        command = " ".join(["python -m bench", *(["--quick"] if chosen.quick else []), *chosen.rows])
        about = (
            f"`{command}` on {datetime.now(UTC):%Y-%m-%d}, {time.monotonic() - began:.0f} s. "
            f"{machine(databases.folder)}. Before: {before}. After: {condition(databases.folder)}."
        )
    left_out = [name for name in _ROWS if name not in names]
    if left_out:
        notes.append(f"not measured in this run: {', '.join(left_out)}")
    print(f"\n{about}")
    for note in notes:
        print(note)
    _RESULTS.mkdir(exist_ok=True)
    written = _RESULTS / f"{datetime.now(UTC):%Y-%m-%d-%H%M}{'-quick' if chosen.quick else ''}.md"
    written.write_text(markdown(lines, notes, about))
    print(f"Written to {written}")


if __name__ == "__main__":
    main()
