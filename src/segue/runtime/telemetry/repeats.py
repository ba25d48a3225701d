"""A limit on repeats: a place in the code logs so many lines a minute, and the rest is counted.

Law: a fault that comes back a thousand times a second fills neither the disk nor the screen, and its count is told.
"""

import logging
import time
from collections.abc import Iterator

from segue.core.contracts.database import Clock

_MINUTE = 60.0
_LINES = 100
"""Lines that a place may log in a minute."""
_TRACEBACKS = 5
"""The same of one error from one place, with its traceback."""
_Place = tuple[str, int, str, str]


class RepeatLimit(logging.Handler):
    """Passes records on to a handler, except those that come too often."""

    def __init__(self, inner: logging.Handler, ticks: Clock = time.monotonic) -> None:
        super().__init__()
        self._inner = inner
        self._ticks = ticks
        self._windows: dict[_Place, _Window] = {}
        """The minute of each place that logged lately, the oldest first."""

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a record on, after the counts of the minutes that are over."""
        now = self._ticks()
        for summary in self._summaries(now):
            self._inner.handle(summary)
        window = self._windows.setdefault(_place(record), _Window(now))
        window.count += 1
        if window.count <= (_TRACEBACKS if record.exc_info else _LINES):
            self._inner.handle(record)
        else:
            window.last = record

    def close(self) -> None:
        """Tell the counts that are left, and close the handler behind this one."""
        for summary in self._summaries(float("inf")):
            self._inner.handle(summary)
        self._inner.close()
        super().close()

    def _summaries(self, now: float) -> Iterator[logging.LogRecord]:
        """A line for each place whose minute is over and that logged more than it may."""
        while self._windows:
            place, window = next(iter(self._windows.items()))
            if now - window.since < _MINUTE:
                return
            del self._windows[place]
            if window.last is not None:
                yield window.summary(window.last)


class _Window:
    """A minute of one place."""

    def __init__(self, since: float) -> None:
        self.since = since
        self.count = 0
        self.last: logging.LogRecord | None = None
        """The last record that was left out."""

    def summary(self, last: logging.LogRecord) -> logging.LogRecord:
        """How many lines were left out, and what the last of them said."""
        left_out = self.count - (_TRACEBACKS if last.exc_info else _LINES)
        known = {"name": last.name, "levelno": last.levelno, "levelname": last.levelname}
        words = f"{left_out} more in a minute, the last of them: {last.getMessage()}"
        return logging.makeLogRecord({**known, "msg": words, "repeats": left_out})


def _place(record: logging.LogRecord) -> _Place:
    """The line of code that logs; for an error also its type and the line that raised it."""
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return record.pathname, record.lineno, "", ""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    raised = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else ""
    return record.pathname, record.lineno, type(error).__name__, raised
