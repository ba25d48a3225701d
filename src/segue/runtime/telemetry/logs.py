"""Structured logs: one JSON object a line, or a readable line when a person watches.

A line says what happened, to which message (its trace), and nothing that anybody wrote: no text, no token, no secret.
As a second net, every known secret is struck from a line before it is written. What went wrong in somebody else's
library is told by its type and place alone, because its words may quote a message.
"""

import json
import logging
import re
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO
from urllib.parse import quote

from segue.core.contracts.database import Clock
from segue.core.values import Secret
from segue.errors import SegueError
from segue.runtime.telemetry.repeats import RepeatLimit

_trace: ContextVar[str] = ContextVar("trace", default="")

_STRUCK = "[secret]"
_SHORTEST = 4
"""Characters: striking a shorter one would tell more than it hides."""
_PLAIN = (SegueError, OSError, ImportError, NameError, AttributeError, TypeError, AssertionError, RuntimeError)
"""Errors whose words are about the program."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_RECORD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}
_QUIET = ("uvicorn", "httpx", "httpcore", "httpx2", "httpcore2", "telegram", "discord", "asyncio")
"""Libraries that talk about each call."""


@contextmanager
def traced(trace: str) -> Iterator[None]:
    """Everything logged inside belongs to one message."""
    token = _trace.set(trace)
    try:
        yield
    finally:
        _trace.reset(token)


class Lines(logging.Formatter):
    """Makes a line of a record, without the secrets."""

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        super().__init__()
        known = {form for secret in secrets for form in _forms(secret.reveal())}
        # The longest first: one secret may begin with another.
        words = "|".join(re.escape(form) for form in sorted(known, key=len, reverse=True))
        self._known = re.compile(words) if words else None

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line = self.line(record)
        return self._known.sub(_STRUCK, line) if self._known else line

    def line(self, record: logging.LogRecord) -> str:
        """One line, before secrets are struck from it."""
        said = {"at": _time(record).isoformat(timespec="milliseconds"), "level": record.levelname.lower()}
        said |= {"from": record.name, "event": record.getMessage()}
        stack = {"stack": places} if (places := _stack(record)) else {}
        return json.dumps({**said, **_fields(record), **stack}, default=str)


class ReadableLines(Lines):
    """For a person at a terminal."""

    def line(self, record: logging.LogRecord) -> str:
        """The time of day, how bad it is, what happened; then the fields, and where an error came from."""
        fields = "".join(f"  {name}={value}" for name, value in _fields(record).items())
        line = f"{_time(record).astimezone():%H:%M:%S} {record.levelname.lower():<8} {record.getMessage()}{fields}"
        # A control character could redraw the terminal, or pass for a line of its own.
        line = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", line)
        return "\n    ".join([line, *_stack(record)])


def start(stream: TextIO, secrets: Iterable[Secret] = ()) -> logging.Handler:
    """Log to a stream from now on; returns the handler, for whoever wants to end it."""
    lines = ReadableLines if stream.isatty() else Lines
    handler = logging.StreamHandler(stream)
    handler.setFormatter(lines(secrets))
    return begin(handler)


def begin(handler: logging.Handler, ticks: Clock = time.monotonic) -> logging.Handler:
    """Log by a handler from now on, with a limit on repeats; returns the handler to remove in the end."""
    limit, root = RepeatLimit(handler, ticks), logging.getLogger()
    root.addHandler(limit)
    root.setLevel(logging.INFO)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    return limit


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """Facts beside the event: its trace, the fields of `extra`, and the error."""
    fields: dict[str, object] = {"trace": trace} if (trace := _trace.get()) else {}
    fields |= {name: value for name, value in vars(record).items() if name not in _RECORD}
    if record.exc_info and (error := record.exc_info[1]):
        # A failure that is named is an agent's: its words may quote a message, whatever its type.
        fields["error"] = fields.get("failure") or _told(error)
    return fields


def _stack(record: logging.LogRecord) -> list[str]:
    return _places(error) if record.exc_info and (error := record.exc_info[1]) else []


def _told(error: BaseException) -> str:
    name = type(error).__name__
    return f"{name}: {error}" if isinstance(error, _PLAIN) else name


def _places(error: BaseException, seen: tuple[BaseException, ...] = ()) -> list[str]:
    """The places in the code that an error and its cause came from, without the words of either.

    An error may be its own cause, such as after `raise error from error`.
    """
    seen = (*seen, error)
    places = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and cause not in seen:
        places += [f"after {_told(cause)}", *_places(cause, seen)]
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            if part not in seen:
                places += [f"with {_told(part)}", *_places(part, seen)]
    return places


def _forms(secret: str) -> Iterator[str]:
    """The forms of a secret in a line: as it is, and as JSON, Python or an address write it."""
    for form in (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], quote(secret, safe="")):
        if len(form) >= _SHORTEST:
            yield form
