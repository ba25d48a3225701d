import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from segue.core.values import Secret
from segue.errors import SendNever
from segue.runtime.telemetry import logs
from segue.testing import HandClock

TEXT = "what Ada wrote in private"
log = logging.getLogger("segue.test")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Written:
    """What was logged since the test began."""

    def __init__(self, stream: io.StringIO) -> None:
        self.stream = stream

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Leave the root logger, which all tests share, as it was."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:], root.level = handlers, level


def started(*secrets: str, stream: io.StringIO | None = None) -> Written:
    stream = stream or io.StringIO()
    logs.start(stream, [Secret(secret) for secret in secrets])
    return Written(stream)


def fail(error: Exception) -> None:
    raise error


def test_a_line_is_an_object_with_its_fields() -> None:
    written = started()
    log.info("turn %d ended", 7, extra={"session": "s1", "seconds": 0.5})
    [line] = written.lines
    at = line.pop("at")
    assert at.endswith("+00:00")
    assert line == {"level": "info", "from": "segue.test", "event": "turn 7 ended", "session": "s1", "seconds": 0.5}


def test_a_message_of_many_lines_is_one_line() -> None:
    written = started()
    log.info("one\ntwo")
    assert written.lines[0]["event"] == "one\ntwo"


async def test_each_message_has_its_own_trace() -> None:
    written = started()

    async def work(trace: str) -> None:
        with logs.traced(trace):
            await asyncio.sleep(0)
            log.info("worked")

    await asyncio.gather(work("t1"), work("t2"))
    await work("t3")
    log.info("rested")
    assert [line.get("trace") for line in written.lines] == ["t1", "t2", "t3", None]


@pytest.mark.parametrize("secret", ["hunter2-hunter2", 'quo"te\\d', "pass word&ü", "it's"])
@pytest.mark.parametrize("terminal", [io.StringIO, Terminal])
def test_a_known_secret_is_struck_wherever_it_turns_up(secret: str, terminal: type[io.StringIO]) -> None:
    written = started("another", secret, stream=terminal())
    log.info("the token is %s", secret, extra={"url": f"http://h/?k={secret}", "seen": [secret]})
    try:
        fail(SendNever(secret))
    except SendNever:
        log.exception("it failed")
    plain = json.dumps(secret)[1:-1]
    assert secret not in written.text
    assert plain not in written.text
    assert written.text.count("[secret]") == 4


def test_a_secret_that_begins_with_another_is_struck_whole() -> None:
    written = started("hunter", "hunter2-hunter2")
    log.info("hunter2-hunter2")
    assert written.lines[0]["event"] == "[secret]"


def test_an_error_of_our_own_is_told_with_its_place() -> None:
    written = started()
    try:
        fail(SendNever("the callback answered 404"))
    except SendNever:
        log.exception("a delivery is a dead letter")
    [line] = written.lines
    assert line["error"] == "SendNever: the callback answered 404"
    assert line["stack"][-1].endswith("in fail")
    assert "test_logs.py:" in line["stack"][-1]


@pytest.mark.parametrize("terminal", [io.StringIO, Terminal])
def test_the_words_of_a_strange_error_are_not_told(terminal: type[io.StringIO]) -> None:
    written = started(stream=terminal())

    def fail_more() -> None:
        try:
            fail(ValueError(TEXT))
        except ValueError as error:
            raise ExceptionGroup(TEXT, [KeyError(TEXT), error]) from error

    try:
        fail_more()
    except ExceptionGroup:
        log.exception("it failed")
    assert TEXT not in written.text
    assert "in fail_more" in written.text
    assert "after ValueError" in written.text
    assert "with KeyError" in written.text


def test_a_person_reads_one_plain_line() -> None:
    written = started(stream=Terminal())
    with logs.traced("t1"):
        log.warning("the disk is full\x1b[2J\nreally", extra={"account": "http.alpha"})
    [line] = written.text.splitlines()
    assert line.split(" ", 1)[1] == r"warning  the disk is full\x1b[2J\x0areally  trace=t1  account=http.alpha"


def test_libraries_that_tell_of_each_call_are_quiet() -> None:
    written = started()
    logging.getLogger("httpx2").info("POST http://127.0.0.1/out")
    logging.getLogger("uvicorn.error").info("Started")
    logging.getLogger("uvicorn.error").error("Broken")
    assert [line["event"] for line in written.lines] == ["Broken"]


async def test_a_place_that_logs_too_often_is_counted() -> None:
    stream, clock = io.StringIO(), HandClock()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.Lines())
    logs.begin(handler, clock)
    for n in range(1000):
        log.warning("the disk is full, said for the %dth time", n)
    log.info("something else")
    written = Written(stream)
    assert [line["event"] for line in written.lines].count("something else") == 1
    assert len(written.lines) == 101
    clock.passes(60.0)
    log.info("a minute later")
    counted, later = written.lines[-2:]
    assert counted["event"] == "900 more in a minute, the last of them: the disk is full, said for the 999th time"
    assert counted["repeats"] == 900
    assert later["event"] == "a minute later"
    log.warning("the disk is full")
    assert written.lines[-1]["event"] == "the disk is full"


def test_a_traceback_that_comes_too_often_is_counted_and_others_are_told() -> None:
    written = started()
    for error in [ValueError] * 100 + [KeyError]:
        try:
            fail(error(TEXT))
        except (ValueError, KeyError):
            log.exception("a request failed")
    assert [line["error"] for line in written.lines] == ["ValueError"] * 5 + ["KeyError"]


def test_counts_that_are_left_are_told_in_the_end() -> None:
    stream = io.StringIO()
    handler = logs.start(stream)
    for _ in range(103):
        log.info("again")
    handler.close()
    assert Written(stream).lines[-1]["repeats"] == 3


def test_an_error_that_is_its_own_cause_is_told() -> None:
    written = started()
    try:
        try:
            fail(AttributeError("an agent ended"))
        except AttributeError as error:
            raise error from error
    except AttributeError:
        log.exception("it failed")
    [line] = written.lines
    assert line["error"] == "AttributeError: an agent ended"
