"""Slack: the unused stretch of a page of the SQLite file, between the list of its cells and the cells themselves.

SQLite moves cells to another page when one is full and leaves their bytes where they were, `secure_delete` or not.

Law: slack is overwritten in the file itself, and only while nothing else can change it: the log is empty, and the lock
of the writer is ours. The commit at the end makes every connection read its pages anew before it writes one again.
"""

from collections.abc import Sequence
from pathlib import Path

import apsw

_HEADER = 100
"""Bytes of the file's own header, on its first page."""
_BEGINS = {2: 12, 5: 12, 10: 8, 13: 8}
"""Bytes before the list of a page's cells, by the kind of page that its first byte names."""
_MOST = 2 << 24
"""Pages of a file in which other pages, which begin with a page's number, can't look like one of a kind."""
_AT_ONCE = 2_000
"""Pages that are overwritten before others may write again."""
_ATTEMPTS = 20


class Slack:
    """The slack of one file."""

    def __init__(self, connection: apsw.Connection, path: Path, vfs: str | None) -> None:
        self._connection = connection
        self._log = Path(f"{path}-wal")
        # SQLite's own way to open it: closing any other would drop the locks that this process holds on the file.
        flags = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE
        self._file = apsw.VFSFile(vfs or "", str(path), [flags, 0])
        ((self._size,),) = connection.execute("pragma page_size")

    def close(self) -> None:
        """Let go of the file."""
        self._file.xClose()

    def wipe(self) -> bool:
        """Empty the log and overwrite all slack; False if somebody was in the way."""
        if not self._empty_log():
            return False
        count = self._file.xFileSize() // self._size
        if count >= _MOST:
            self._connection.execute("vacuum")
            return self._empty_log()
        used = [number for number in range(1, count + 1) if self._used(number)]
        return all(self._overwrite(used[start : start + _AT_ONCE]) for start in range(0, len(used), _AT_ONCE))

    def _empty_log(self) -> bool:
        """Fold all of the log into the file and cut it to nothing; False if somebody still reads from it."""
        ((busy, _, _),) = self._connection.execute("pragma wal_checkpoint(truncate)")
        return not busy

    def _used(self, number: int) -> tuple[int, int] | None:
        """The beginning and the end of a page's slack, if there is something in it."""
        page = self._file.xRead(self._size, (number - 1) * self._size)
        head = _HEADER if number == 1 else 0
        if (listed := _BEGINS.get(page[head])) is None:
            return None
        begin = head + listed + 2 * int.from_bytes(page[head + 3 : head + 5], "big")
        end = int.from_bytes(page[head + 5 : head + 7], "big") or 65536
        return (begin, end) if begin < end and page.count(0, begin, end) != end - begin else None

    def _overwrite(self, pages: Sequence[int]) -> bool:
        """Overwrite the slack of some pages; False if somebody wrote each time before the lock was ours."""
        for _ in range(_ATTEMPTS):
            if not self._empty_log():
                return False
            self._connection.execute("begin immediate")
            try:
                if self._log.exists() and self._log.stat().st_size:
                    continue
                for number in pages:
                    if slack := self._used(number):
                        begin, end = slack
                        self._file.xWrite(bytes(end - begin), (number - 1) * self._size + begin)
                self._file.xSync(apsw.SQLITE_SYNC_FULL)
                ((version,),) = self._connection.execute("pragma user_version")
                self._connection.execute(f"pragma user_version = {version}")
                self._connection.execute("commit")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("rollback")
            return True
        return False
