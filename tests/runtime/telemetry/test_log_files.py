"""The log's file: rotated while it is written, its user's alone, and no trouble for whoever logs."""

import json
import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from segue.core.values import Secret
from segue.runtime.telemetry import logs
from segue.runtime.telemetry.log_files import PrivateLog, logging_to
from segue.runtime.telemetry.repeats import RepeatLimit

log = logging.getLogger("segue.test")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:], root.level = handlers, level


def events(path: Path) -> list[str]:
    return [json.loads(line)["event"] for line in path.read_text("utf-8").splitlines()]


def record(words: str) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": logs.Lines().format(logging.makeLogRecord({"msg": words}))})


def test_all_that_was_logged_is_there_in_the_end_without_the_secrets(tmp_path: Path) -> None:
    with logging_to(tmp_path / "log", [Secret("hunter2")]), logs.traced("t1"):
        for n in range(50):
            log.info("line %d of hunter2", n)
    assert events(tmp_path / "log") == [f"line {n} of [secret]" for n in range(50)]
    assert json.loads((tmp_path / "log").read_text().splitlines()[0])["trace"] == "t1"
    assert not any(isinstance(handler, RepeatLimit) for handler in logging.getLogger().handlers)


def test_a_large_log_is_rotated_while_it_is_written(tmp_path: Path) -> None:
    file = PrivateLog(tmp_path / "log", largest=2000)
    for n in range(60):
        file.emit(record(f"line {n}"))
    file.close()
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["log", "log.1"]
    assert all((tmp_path / name).stat().st_size <= 2000 for name in kept)
    assert all(stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600 for name in kept)
    assert events(tmp_path / "log")[-1] == "line 59"


def test_lines_that_could_not_be_written_are_counted_where_it_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    file = PrivateLog(folder / "log")
    file.close()
    folder.rename(tmp_path / "away")
    for n in range(3):
        file.emit(record(f"lost {n}"))
    (tmp_path / "away").rename(folder)
    file.emit(record("there again"))
    file.close()
    assert events(folder / "log") == [
        "there again",
        "3 lines couldn't be written here before this one. See to the disk.",
    ]
    assert capsys.readouterr().err == ""
