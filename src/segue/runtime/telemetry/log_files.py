"""The log's file: private, rotated while the gateway runs, and written by a thread of its own.

Law: a disk that is full or hangs stops nobody who logs; lines that couldn't be written are counted in the log.
"""

import logging
import os
import queue
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from logging.handlers import QueueHandler, QueueListener, RotatingFileHandler
from pathlib import Path

from segue.core.values import Secret
from segue.runtime.telemetry.logs import Lines, begin

_LARGEST_BYTES = 10 * 1024 * 1024
_MOST_WAITING = 10_000
"""Lines that wait for the disk; further ones are lost, and counted."""


@contextmanager
def logging_to(path: Path, secrets: Iterable[Secret] = ()) -> Iterator[None]:
    """Log to a file until the block ends; a large one is kept beside it as `log.1` until the next is large too."""
    lines = queue.Queue[logging.LogRecord](_MOST_WAITING)
    file = PrivateLog(path)
    writer, writing = _LineQueue(lines, file), QueueListener(lines, file)
    writer.setFormatter(Lines(secrets))
    handler = begin(writer)
    writing.start()
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()
        writing.stop()
        file.close()


class PrivateLog(RotatingFileHandler):
    """A file that only its user can read."""

    def __init__(self, path: Path, largest: int = _LARGEST_BYTES) -> None:
        self.lost = 0
        """Lines that couldn't be written lately."""
        super().__init__(path, maxBytes=largest, backupCount=1, encoding="utf-8")

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, and after a gap how many are missing."""
        lost = self.lost
        super().emit(record)
        if lost and lost == self.lost:
            self.lost = 0
            words = f"{lost} lines couldn't be written here before this one. See to the disk."
            missing = logging.makeLogRecord({"name": __name__, "levelno": logging.WARNING, "msg": words})
            missing.levelname = "WARNING"
            super().emit(logging.makeLogRecord({"msg": Lines().format(missing)}))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 -- its name in the library
        """Count a line that couldn't be written: the library would print it, whatever it says."""
        del record
        self.lost += 1

    def _open(self) -> TextIOWrapper:
        """Open it, made for its user alone; the library calls this for each new file."""
        return TextIOWrapper(open(self.baseFilename, "ab", opener=_private), encoding=self.encoding)


class _LineQueue(QueueHandler):
    """Makes lines of records where they are logged, and leaves them to be written."""

    def __init__(self, lines: "queue.Queue[logging.LogRecord]", file: PrivateLog) -> None:
        super().__init__(lines)
        self._file = file

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 -- its name in the library
        """Count a line for which there is no room."""
        self._file.handleError(record)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
