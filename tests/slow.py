"""Tests that work for long, each with the reason why it may.

What counts is work, not time: processor seconds of the test itself, of the programs that it ran and of the processes
that were forked for it. A machine that is busy with something else makes a test work twice as long at most.
"""

import os
from multiprocessing import forkserver
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

BOUND = 10.0
"""Seconds of work; a test that isn't in the list takes a quarter of it at most where this was written, by itself."""

REASONS = {
    "tests/adapters/test_matrix.py::test_a_homeserver_that_was_killed_is_connected_again_and_nothing_is_lost": (
        "a homeserver of its own starts twice"
    ),
    "tests/changes/test_machine.py::test_the_store_does_what_the_model_says": (
        "hundreds of random moves, each compared with the model on both databases"
    ),
    "tests/drills/test_backlog.py::test_messages_that_wait_are_all_answered_in_order": "two thousand turns",
    "tests/drills/test_bindings.py::test_what_four_processes_saw_of_each_lane_fits_one_order": (
        "four processes that are killed and started again"
    ),
    "tests/drills/test_children.py::test_every_result_and_every_answer_of_a_child_comes_exactly_once": (
        "two gateways that die and are started again while people have children work for them"
    ),
    "tests/drills/test_everywhere.py::test_one_session_in_five_places_loses_doubles_and_mixes_nothing": (
        "four platforms with an outage each, one of them a homeserver of its own"
    ),
    "tests/drills/test_handoffs.py::test_a_handoff_is_done_or_undone_on_both_sides_whatever_races_it": (
        "two gateways that are killed and started again while handoffs race"
    ),
    "tests/drills/test_kills.py::test_nothing_is_lost_doubled_or_out_of_order_though_the_gateway_is_killed": (
        "twenty-five gateways are started and killed under load"
    ),
    "tests/drills/test_overload.py::test_twice_of_what_can_be_done_is_slowed_then_refused_and_nothing_is_lost": (
        "a gateway is given twice what it can do"
    ),
    "tests/drills/test_planted.py::test_readers_find_it": (
        "a leak that takes a certain turn of events is looked for in many towns"
    ),
    "tests/drills/test_questions.py::test_a_planted_mistake_is_found": "gateways are killed until the mistake shows",
    "tests/drills/test_soak.py::test_nothing_of_a_turn_is_kept_when_it_is_over": (
        "what a thousand turns leave behind is counted"
    ),
    "tests/first_hour/test_first_hour.py::test_from_an_empty_home_to_a_phone_and_back": (
        "a newcomer's first hour: a dozen commands, each a process of its own, and three servers"
    ),
    "tests/runtime/mcp/test_processes.py::"
    "test_the_inspector_calls_every_tool_over_http_and_lists_them_by_standard_input": (
        "the inspector, a program of Node's, is started for each tool"
    ),
    "tests/runtime/mcp/test_processes.py::"
    "test_the_hosts_programs_go_on_over_a_kill_of_the_gateway_and_nothing_is_done_twice": (
        "a gateway is killed and started three times, and loads the library of MCP each time"
    ),
    "tests/stories/test_acp_others.py::test_it_streams_asks_is_stopped_killed_branched_and_taken_back": (
        "a coding agent of somebody else's starts four times"
    ),
    "tests/stories/test_acp_others.py::test_a_turn_in_which_the_gateway_dies_is_answered_by_the_next": (
        "a coding agent of somebody else's starts three times, and a gateway twice"
    ),
}
"""By the test's name without its parameters."""


class TooSlow(AssertionError):
    """A test works for longer than a test may."""


def work() -> float:
    """Seconds that this process, those that it waited for and those that its fork server did have worked so far."""
    own = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(used.ru_utime + used.ru_stime for used in own) + _forked()


def _forked() -> float:
    """What /proc says of the fork server's children; nothing where there is none."""
    server = getattr(forkserver._forkserver, "_forkserver_pid", None)
    told = Path(f"/proc/{server}/stat")
    if not told.exists():
        return 0.0
    user, system = told.read_text().rpartition(")")[2].split()[13:15]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def judge(name: str, seconds: float) -> None:
    """Refuse a test that has worked for too long without a reason."""
    if seconds > BOUND and name.partition("[")[0] not in REASONS:
        raise TooSlow(f"{seconds:.1f} s of work: make it quicker, or say in tests/slow.py why it may be slow")
