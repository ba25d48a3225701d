"""Writes docs/promises.md: `python -m tests.docs.promises > docs/promises.md`. Its numbers are the drills' own."""

import sys
from typing import NamedTuple

from tests.drills.__main__ import DRILLS

HEADER = """# What is promised, and how it is tested

Every promise below is a test that you can run. `make test` runs a short, seeded sample of each
drill. `make drill` runs them at full length. One drill: `python -m tests.drills NAME --minutes 5`.

A drill breaks things on purpose: it kills and freezes processes, cuts the power, fills disks, and
forges calls. Then it counts. A drill must be able to fail: `tests/drills/test_planted.py` plants a
mistake for each, such as an acknowledgement before the commit, and the drill must find it.

| promise | short form | full length |
| --- | --- | --- |
"""

FOOTER = """
Speed is measured by `make bench`, as ratios to plain SQLite and to other libraries in one run.
Figures are in [bench/results](../bench/results), from the machine that is named there, and
[bench/README.md](../bench/README.md) says how to read them.

This page is written by `python -m tests.docs.promises > docs/promises.md`, never by hand.
"""


class Promise(NamedTuple):
    """A promise, the test that samples it, and the drills that show it at full length."""

    text: str
    test: str
    drills: tuple[str, ...] = ()


PROMISES = [
    Promise(
        "An accepted message is never lost, doubled or out of order, even when the gateway is killed at random.",
        "drills/test_kills.py",
        ("kills", "kills-postgres"),
    ),
    Promise(
        "The same holds when it is killed at each labelled step of a message's way.",
        "drills/test_labels.py",
        ("labels", "labels-postgres"),
    ),
    Promise(
        "The same holds when the power fails, whatever part of the unsynced writes the disk kept.",
        "drills/test_power.py",
        ("power",),
    ),
    Promise(
        "A disk that fails, hangs, is full, locked or damaged loses nothing, and `/healthz` reports it meanwhile.",
        "drills/test_disks.py",
        ("disks",),
    ),
    Promise("A replica that froze past its lease writes nothing.", "drills/test_zombies.py", ("zombies-postgres",)),
    Promise(
        "A handed-off conversation ends up in exactly one of the two places, whatever races the handoff.",
        "drills/test_handoffs.py",
        ("handoffs", "handoffs-postgres"),
    ),
    Promise(
        "A child session's result reaches its parent once, whichever side is killed.",
        "drills/test_children.py",
        ("children", "children-postgres"),
    ),
    Promise(
        "Four processes that are killed and paused see one order of a lane's bindings.",
        "drills/test_bindings.py",
        ("bindings", "bindings-postgres"),
    ),
    Promise(
        "A forged or replayed webhook call is never answered, also after a restart.",
        "drills/test_forgeries.py",
        ("forgeries",),
    ),
    Promise(
        "Nobody can speak in another person's name, whatever names and words they choose.",
        "drills/test_hostile_names.py",
        ("names", "lanes"),
    ),
    Promise(
        "Scheduled work runs once for each due time, even when a replica is killed at that moment.",
        "drills/test_schedules.py",
        ("schedules", "schedules-postgres"),
    ),
    Promise(
        "A conversation moves between a terminal and every platform, even when the gateway is killed on the way.",
        "platforms",
    ),
    Promise(
        "One session in two editors, on Telegram and on the page shows the same everywhere, despite kills.",
        "drills/test_editors.py",
        ("editors",),
    ),
    Promise(
        "One session on Telegram, Matrix, Slack, Discord and the page stays whole while each of them fails.",
        "drills/test_everywhere.py",
        ("everywhere",),
    ),
    Promise(
        "Encrypted Matrix rooms work with clients of another library, and nothing is sent in the clear.",
        "adapters/test_matrix_encrypted.py",
    ),
    Promise(
        "No session is reset twice or without a reason, even on nights when clocks change.",
        "changes/sessions/test_resets.py",
    ),
    Promise(
        "Nobody sees words that they may not read, while people use every command at random.",
        "drills/test_readers.py",
        ("readers",),
    ),
    Promise(
        "Whatever people type or platforms send is handled, and others are answered meanwhile.",
        "drills/test_hostile_input.py",
        ("hostile-input", "hostile-input-postgres"),
    ),
    Promise(
        "Forgotten words are in no byte of the SQLite files, and in no row or index on PostgreSQL.",
        "drills/test_forgetting.py",
        ("forgetting", "forgetting-postgres"),
    ),
    Promise(
        "A question is decided once, and nothing runs without a yes, even when answers race and gateways are killed.",
        "drills/test_questions.py",
        ("questions", "questions-postgres"),
    ),
    Promise(
        "A platform that is slower than a lease is called once for each message.",
        "drills/test_slowness.py",
        ("slowness", "slowness-postgres"),
    ),
    Promise(
        "Two gateways that share a budget never spend more than it has.",
        "drills/test_budgets.py",
        ("budgets", "budgets-postgres"),
    ),
    Promise("No words of one session appear in another, in a log, a metric or an error.", "stories/test_canary.py"),
    Promise(
        "Twice the load that can be handled: answers keep coming, the rest is refused with 503.",
        "drills/test_overload.py",
        ("overload",),
    ),
    Promise(
        "A burst of answers, and calls that a platform never answers, keep nobody else waiting.",
        "drills/test_crowds.py",
        ("crowds", "crowds-postgres"),
    ),
    Promise(
        "A commit whose answer gets lost delays nothing until a restart, and doubles nothing.",
        "drills/test_unheard.py",
        ("unheard", "unheard-postgres"),
    ),
    Promise(
        "A failure that nobody foresaw, of an adapter, a loop or a file, stops nothing else and is reported.",
        "drills/test_failing.py",
        ("everything-fails",),
    ),
    Promise(
        "Callers who send or read nothing keep nobody else from being served.",
        "drills/test_callers.py",
        ("callers",),
    ),
    Promise(
        "A start with a clock that is ahead makes nothing old.",
        "drills/test_days.py",
        ("days", "days-postgres"),
    ),
    Promise("A long run keeps memory, descriptors and tasks flat.", "drills/test_soak.py", ("soak",)),
]


def describe_drill(name: str) -> str:
    """The name of a drill with its full count."""
    drill = DRILLS[name]
    return f"`{name}`: {drill.target:,} {drill.unit}"


def page() -> str:
    """The page as it is to be."""
    rows = [
        f"| {promise.text} | `tests/{promise.test}` | {'; '.join(map(describe_drill, promise.drills)) or '-'} |\n"
        for promise in PROMISES
    ]
    return HEADER + "".join(rows) + FOOTER


if __name__ == "__main__":
    sys.stdout.write(page())
