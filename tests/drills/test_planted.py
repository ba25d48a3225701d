"""A test of the drills: each mistake is planted, and found by the sample of the drill that is there to find it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from segue.core.contracts.probes import Point
from segue.core.messages import Sending
from segue.core.settings import Streams
from tests.drills import bindings, descriptors, disks, failing, forgeries, kills, labels, power, readers, soak, zombies
from tests.drills.failing import Fault
from tests.drills.forgers import FORGERS
from tests.drills.planting import Bug
from tests.drills.test_bombs import FOUND_BY_BOMBS
from tests.drills.test_hostile_input import FOUND_BY_HOSTILE_INPUT
from tests.drills.test_rights import FOUND_BY_RIGHTS
from tests.drills.town import Report
from tests.full import full

FOUND_BY_KILLS: dict[Bug, Callable[[Report], list[str]]] = {
    Bug.ACKNOWLEDGES_FIRST: lambda report: report.lost,
    Bug.NEVER_TAKES_OVER: lambda report: report.lost,
}
FOUND_BY_LABELS: dict[Bug, tuple[Point, Callable[[Report], list[str]]]] = {
    Bug.NEW_KEYS: (Point.SEND_CALLED, lambda report: report.doubled),
}
FOUND_BY_POWER_CUTS = {
    Bug.ANSWERS_BEFORE_THE_COMMIT: "lost",
    Bug.COMMITS_UNSYNCED: "lost",
    Bug.NOTHING_SYNCED: "lost",
    Bug.FOLDER_UNSYNCED: "lost",
    Bug.FORGETS_KEYS: "a message became two turns",
    Bug.ACCEPTS_IN_TWO_TRANSACTIONS: "a session's turns aren't numbered",
    Bug.FINISHES_IN_TWO_TRANSACTIONS: "no answer is on its way",
}
FOUND_BY_ZOMBIES = (Bug.LEASES_WITHOUT_EPOCHS,)
FOUND_BY_HISTORIES = (Bug.REMEMBERS_BINDINGS, Bug.LANES_UNLOCKED)
FOUND_BY_FORGERIES = {
    Bug.SIGNATURES_UNREAD: {"http v1", "http v2"},
    Bug.ANY_TIME: {"http v1", "http v2"},
    Bug.SECRET_UNREAD: {"telegram"},
    Bug.PROOFS_UNREAD: {"slack", "whatsapp", "feishu"},
    Bug.ANY_HANDSHAKE: {"whatsapp handshake", "feishu handshake"},
}
"""With the proofs that it makes worthless."""
FOUND_BY_SOAKS = (Bug.HOARDS,)
FOUND_BY_CROWDS = (Bug.TURNS_WITHOUT_WAITING, Bug.HANGS_IN_PLACE)
"""By `test_crowds.py`."""
FOUND_BY_CALLERS = (Bug.WRITES_FOR_EVER, Bug.NEWCOMERS_REFUSED)
"""By `test_callers.py`."""
FOUND_BY_DAYS = (Bug.DAYS_BY_THE_CLOCK,)
"""By `test_days.py`."""
FOUND_BY_LOST_ANSWERS = (Bug.NEVER_LOOKS_AT_ITSELF,)
"""By `test_unheard.py`."""
FOUND_BY_QUESTIONS = (Bug.ANSWERED_TWICE, Bug.RUNS_BEFORE_THE_ANSWER, Bug.NO_DEADLINE)
"""By `test_questions.py`."""
FOUND_BY_BUDGETS = (Bug.NOTHING_RESERVED,)
"""By `test_budgets.py`."""
_SOONER = {Bug.PARTED_READ_ON: 2, Bug.HOME_OF_ALL: 2}
"""The towns with which a drill begins that would take long to find its mistake in the first."""
FOUND_BY_READERS = (
    Bug.ONCE_READ_ALWAYS_READ,
    Bug.TOOLS_REACH_ALL,
    Bug.SENDS_TO_ALL,
    Bug.ANSWERS_GO_ANYWHERE,
    Bug.LISTS_TELL_ALL,
    Bug.HOME_OF_ALL,
    Bug.TERMINAL_OPENS_ON_ANY,
    Bug.HOMES_IN_EVERY_PROMPT,
    Bug.ERRORS_FOR_ALL,
    Bug.LINKED_AT_ONCE,
    Bug.CANCELS_ALOUD,
    Bug.BACK_TO_THE_UNREAD,
    Bug.LATE_ANSWERS_GO_HOME,
    Bug.PARTED_READ_ON,
    Bug.QUESTIONS_ALOUD,
    Bug.NOTES_FOR_ALL,
    Bug.WAITING_UNSEEN,
    Bug.ROOMS_KEEP_READING,
)
FOUND_BY_FAILURES = {
    Bug.UNSUPERVISED: (Fault("change", "exchange.turns.claim", KeyError), "the gateway ended"),
    Bug.UNTOLD: (Fault("verb", "delete", KeyError), "health didn't name it"),
}
FOUND_BY_NO_DESCRIPTORS = (Bug.WAKES_FIRST,)
FOUND_BY_BAD_DISKS = {
    Bug.OUT_OF_TURN: (2, 10, "out of order"),
    Bug.ONE_CHAT_FOR_ALL: (2, 1, "mixed"),
    Bug.BELIEVES_IN_DISKS: (2, 2, "lost"),
    Bug.ALWAYS_WELL: (2, 2, "never: health turned red"),
    Bug.GIVES_UP: (2, 1, "never: health turned green"),
    Bug.HEALTH_BY_BEATS: (8, 1, "never: health turned red"),
    Bug.READY_WITHOUT_LEASE: (7, 1, "never: it said that it isn't ready"),
}


def test_every_mistake_has_its_drill() -> None:
    found: list[Bug] = [*FOUND_BY_KILLS, *FOUND_BY_LABELS, *FOUND_BY_POWER_CUTS, *FOUND_BY_ZOMBIES]
    found += [*FOUND_BY_HISTORIES, *FOUND_BY_FORGERIES, *FOUND_BY_BAD_DISKS, *FOUND_BY_SOAKS, *FOUND_BY_READERS]
    found += [*FOUND_BY_HOSTILE_INPUT, *FOUND_BY_QUESTIONS, *FOUND_BY_BUDGETS, *FOUND_BY_CROWDS, *FOUND_BY_LOST_ANSWERS]
    found += [*FOUND_BY_BOMBS, *FOUND_BY_CALLERS, *FOUND_BY_DAYS, *FOUND_BY_RIGHTS]
    found += [*FOUND_BY_NO_DESCRIPTORS, *FOUND_BY_FAILURES]
    assert sorted(bug.name for bug in found) == sorted(bug.name for bug in Bug if bug is not Bug.NONE)


@pytest.mark.parametrize("bug", FOUND_BY_KILLS, ids=lambda bug: bug.name)
async def test_kills_find_it(bug: Bug, tmp_path: Path) -> None:
    report = await kills.run(str(tmp_path / "segue.db"), kills=8, seed=7, patience=2.0, bug=bug)
    assert FOUND_BY_KILLS[bug](report)


@pytest.mark.parametrize("bug", FOUND_BY_LABELS, ids=lambda bug: bug.name)
async def test_deaths_at_a_label_find_it(bug: Bug, tmp_path: Path) -> None:
    point, wrong = FOUND_BY_LABELS[bug]
    report = await labels.run(str(tmp_path / "segue.db"), point, 3, 7, Sending.KEYED, Streams.WHOLE, bug)
    assert wrong(report)


@pytest.mark.parametrize("bug", FOUND_BY_POWER_CUTS, ids=lambda bug: bug.name)
def test_power_cuts_find_it(bug: Bug) -> None:
    # Only what was said before the log was first folded goes with its name: few moments, so many are tried.
    images = 600 if bug is Bug.FOLDER_UNSYNCED else 80
    found = power.run(images=images, seed=7, bug=bug)
    assert any(FOUND_BY_POWER_CUTS[bug] in each for each in found.wrong)


@pytest.mark.parametrize("bug", FOUND_BY_FAILURES, ids=lambda bug: bug.name)
def test_failures_find_it(bug: Bug) -> None:
    fault, wrong = FOUND_BY_FAILURES[bug]
    assert any(wrong in each for each in failing.run([fault], bug, patience=1.0))


@pytest.mark.parametrize("bug", FOUND_BY_NO_DESCRIPTORS, ids=lambda bug: bug.name)
def test_no_descriptors_find_it(bug: Bug, tmp_path: Path) -> None:
    assert any("never heard" in wrong for wrong in descriptors.run(str(tmp_path / "segue.db"), messages=10, bug=bug))


@pytest.mark.parametrize("bug", FOUND_BY_ZOMBIES, ids=lambda bug: bug.name)
async def test_zombies_find_it(bug: Bug, today_dsn: str, emptied: Callable[[], None]) -> None:
    for seed in range(3):
        emptied()
        found = await zombies.run(today_dsn, rounds=1, seed=seed, bug=bug)
        if found.twice:
            return
    pytest.fail("nothing was written twice")


@pytest.mark.parametrize("bug", FOUND_BY_BAD_DISKS, ids=lambda bug: bug.name)
def test_bad_disks_find_it(bug: Bug) -> None:
    seed, troubles, wrong = FOUND_BY_BAD_DISKS[bug]
    # A loop that failed counts as steady after five seconds.
    found = disks.run(troubles, seed, stuck=3.0 if bug is Bug.GIVES_UP else 1.0, bug=bug)
    assert any(wrong in each for each in found.wrong)


@pytest.mark.parametrize("bug", FOUND_BY_HISTORIES, ids=lambda bug: bug.name)
async def test_histories_of_bindings_find_it(bug: Bug, today_dsn: str) -> None:
    # Many: on a machine that is busy, processes are killed before they have anything to remember.
    found = await bindings.run(today_dsn, operations=600, seed=7, bug=bug)
    assert found.wrong


@pytest.mark.parametrize("bug", FOUND_BY_FORGERIES, ids=lambda bug: bug.name)
async def test_forgeries_find_it(bug: Bug, tmp_path: Path) -> None:
    found = await forgeries.run(tmp_path, count=80, seed=7, bug=bug)
    assert FOUND_BY_FORGERIES[bug] <= {each.split(":")[0] for each in found.wrong}


def test_every_proof_would_be_missed() -> None:
    assert set().union(*FOUND_BY_FORGERIES.values()) == set(FORGERS)


@pytest.mark.parametrize("bug", FOUND_BY_SOAKS, ids=lambda bug: bug.name)
async def test_soaks_find_it(bug: Bug, tmp_path: Path) -> None:
    found = await soak.run(str(tmp_path / "segue.db"), turns=200, bug=bug)
    assert any("Running" in each for each in found.wrong)


@pytest.mark.parametrize(
    "bug",
    [full(bug) if bug in {Bug.WAITING_UNSEEN, Bug.ROOMS_KEEP_READING} else bug for bug in FOUND_BY_READERS],
    ids=lambda bug: bug.name,
)
async def test_readers_find_it(bug: Bug, tmp_path: Path) -> None:
    for seed in range(_SOONER.get(bug, 0), 60):
        found = await readers.run(str(tmp_path / f"{seed}.db"), steps=400, seed=seed, bug=bug, often=4.0)
        if found.wrong:
            return
    pytest.fail("nobody was shown anything")
