"""`segue status` and `segue logs`: how a gateway stands, and what it wrote down."""

import json
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import Home


def test_without_a_gateway_it_says_how_to_run_one(home: Home) -> None:
    done = home.segue("status")
    assert done.exit_code == 1
    assert done.stdout.split() == ["gateway", *f"none runs in {home.path}. `segue serve` runs one.".split()]
    assert json.loads(home.segue("status", "--json").stdout)[0]["state"] == "note"


def test_commands_that_look_leave_nothing_behind(home: Home) -> None:
    for looks in (["sessions", "list"], ["sessions", "search", "cats"], ["lanes"], ["schedules", "list"], ["status"]):
        home.segue(*looks)
    assert home.segue("sessions", "list", "--json").stdout == "[]\n"
    assert list(home.path.iterdir()) == []


def test_every_command_has_its_short_help(home: Home) -> None:
    for arguments in (["-h"], ["serve", "-h"], ["sessions", "list", "-h"]):
        done = home.segue(*arguments)
        assert (done.exit_code, done.stdout.splitlines()[0][:6]) == (0, "Usage:")


def test_the_newest_lines_of_the_log_are_readable_and_steer_no_terminal(home: Home) -> None:
    assert "there is no log" in home.segue("logs").stderr
    lines = [
        {"at": f"2026-01-01T00:00:0{n}", "level": "info", "from": "x", "event": f"event {n}", "n": n} for n in range(3)
    ]
    written = "".join(f"{json.dumps(line)}\n" for line in lines) + "not json \x1b[2J\n"
    (home.path / "log").write_text(written)
    shown = home.segue("logs", "-n", "2").stdout.splitlines()
    assert shown[0] == "2026-01-01T00:00:02 info event 2 from=x n=2"
    assert "\x1b" not in shown[1]


def test_the_log_is_followed_into_the_file_that_takes_its_place(home: Home) -> None:
    log = home.path / "log"
    log.write_text("one\n")
    follows = [sys.executable, "-m", "segue", "logs", "-f"]
    with subprocess.Popen(follows, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one\n"
        log.replace(Path(f"{log}.1"))
        log.write_text("two\n")
        assert process.stdout.readline() == "two\n"
        process.terminate()
