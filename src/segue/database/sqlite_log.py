"""The log of a SQLite file, folded into the file beside the writer.

Law: folding waits for nobody and nobody waits for it. Only a log that has grown to the most, because somebody writes
without a pause or reads for long, is folded by the writer itself, which finds little left to do.
"""

import logging
import threading
from queue import SimpleQueue

import apsw

log = logging.getLogger(__name__)

PAGES = 1000
"""Pages of log, 4 MB, after which it is folded beside the writer."""
MOST = 4500
"""Pages of log, 18 MB, after which the writer folds it."""


class LogFolder:
    """Folds one file's log, on a thread and a connection of its own."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._asked: SimpleQueue[int | None] = SimpleQueue()
        self._next = PAGES
        self._thread = threading.Thread(target=self._serve, name="segue log", daemon=True)
        self._thread.start()

    def grown(self, writer: apsw.Connection, _name: str, pages: int) -> int:
        """A commit has made the log so many pages long."""
        if pages < self._next - PAGES:
            self._next = PAGES  # it begins anew
        if pages >= self._next:
            self._next = pages + PAGES
            self._asked.put(pages)
        if pages >= MOST:
            # The commit is done: an error here would be taken for its own, and it would be made again.
            _fold(writer)
        return apsw.SQLITE_OK

    def close(self) -> None:
        """Finish, and let go of the file."""
        self._asked.put(None)
        self._thread.join()
        self._connection.close()

    def _serve(self) -> None:
        while self._asked.get() is not None:
            _fold(self._connection)


def _fold(connection: apsw.Connection) -> None:
    """Fold as much as can be folded now; nothing is lost if that is nothing: all of it is in the log still."""
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    except apsw.BusyError:
        """Somebody folds it at this moment."""
    except apsw.Error as error:
        # Whoever writes will meet the same trouble.
        log.warning("the log of the database couldn't be folded: %s", error)
