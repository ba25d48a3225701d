"""The SQLite file: how it is made, recognised, brought up to date and opened, and what its errors mean."""

import errno
import logging
import os
import time
from contextlib import closing, suppress
from ctypes import addressof, c_int
from pathlib import Path
from typing import Any

import apsw

from segue.core.contracts.database import Clock
from segue.core.contracts.probes import Point, Probe
from segue.database.boot_clock import set_clock
from segue.database.shapes import difference, shape_in, unlike
from segue.database.sqlite_beats import lacks_log, note, notice_older, was_folded
from segue.database.sqlite_log import LogFolder
from segue.database.sqlite_slack import Slack
from segue.database.transactions import Steps, pending, too_long
from segue.errors import (
    StoreConflict,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StoreUnreachable,
)

log = logging.getLogger(__name__)

APPLICATION = 0x53656775
"""`Segu` in the file's header: tells our files from those of other programs."""

_PERMIT = "Give yourself write permission to the file and its folder."
_Errors = tuple[type[apsw.Error], ...]
_MEANINGS: tuple[tuple[_Errors, type[StoreError], str], ...] = (
    ((apsw.ConstraintError,), StoreConflict, "a rule of the schema refused the change."),
    (
        (apsw.BusyError, apsw.LockedError, apsw.ProtocolError),
        StoreLocked,
        "another process held it too long. Try again.",
    ),
    ((apsw.FullError,), StoreFull, "the disk is full; nothing of the change was kept. Make room and try again."),
    ((apsw.ReadOnlyError,), StoreReadOnly, f"it can't be written to. {_PERMIT}"),
    ((apsw.NotADBError,), StoreCorrupt, "it isn't a database. Move it aside, or name another file."),
    ((apsw.CorruptError,), StoreCorrupt, "it is damaged. Stop Segue and restore a backup, or move the file aside."),
    ((apsw.CantOpenError, apsw.PermissionsError), StoreUnreachable, "it can't be opened. See whether it is yours."),
    ((apsw.IOError,), StoreUnreachable, "the disk doesn't read or write. See whether it is still there and sound."),
)
# Durable when the power goes too: on macOS only fullfsync makes a sync reach the disk. Where nobody folds the log
# beside the writer, it is folded every 4000 pages, 16 MB; it is cut to that if a long reader let it grow.
_SETTINGS = """
    pragma synchronous = full;
    pragma fullfsync = on;
    pragma checkpoint_fullfsync = on;
    pragma cache_size = -16000;
    pragma wal_autocheckpoint = 4000;
    pragma journal_size_limit = 16384000;
    pragma temp_store = memory;
    pragma secure_delete = on;
"""


_TABLES = "select name from sqlite_schema where type = 'table' and sql not like 'create virtual%' order by name"
_STEPS, _REST = 50_000, 0.001
"""Steps of a look for damage between two rests, and the seconds of a rest."""


class SqliteFile:
    """One database file and how this process reaches it."""

    def __init__(self, path: Path, clock: Clock | None, patience: float, vfs: str | None) -> None:
        self.path = path.absolute()
        self._given = clock
        self._clock = clock or time.time
        self._known: tuple[int, int] | None = None
        """Device and number of the file that was opened."""
        self._known_log: tuple[int, int] | None = None
        """The same of its log, once there is one."""
        self._patience = patience
        self._vfs = vfs

    def writer(self, steps: Steps, probe: Probe) -> apsw.Connection:
        """The connection that writes, to a file that is today's."""
        self._make()
        if alone := self.copied_alone():
            raise alone
        if self._vfs is None and lacks_log(self.path):
            log.warning("another program folded the log of %s into it after a gateway was killed", self.path)
        try:
            connection = self._connect()
            try:
                self._recognise(connection)
                self._refuse_unlike(connection, steps)
                self._log_ahead(connection)
                _sync_folder(self.path.parent)
                self._migrate(connection, steps, probe)
                _write_anew(connection)
                if self._vfs is None:
                    notice_older(self.path, connection)
                if self._given is None and connection.table_exists("main", "replicas"):
                    self._clock = set_clock(connection)
                connection.execute("pragma foreign_keys = on")
            except BaseException:
                connection.close()
                raise
        except apsw.Error as error:
            raise self.named(error) from error
        self._known = _identity(self.path) if self._vfs is None else None
        return connection

    def copied_alone(self) -> StoreCorrupt | None:
        """The error for a copy of the file without its log, made while a gateway ran: it lacks what was in the log.

        The log stays beside the file, also when nobody has it open, and a gateway that runs is written in the file.
        """
        if self._vfs is not None or not lacks_log(self.path) or was_folded(self.path):
            return None
        beside = f"{self.path.name}-wal"
        return StoreCorrupt(
            f"{self.path} was copied while a gateway ran, without {beside}: what was said last isn't in it. "
            "`segue restore FILE` brings a backup back that `segue backup` wrote, or a copy with its log; "
            "`segue restore` goes on with what is here."
        )

    def damage(self) -> str:
        """Look for damage a table at a time, and fold the log into the file first; returns what is wrong."""
        try:
            with closing(self._connect()) as connection:
                connection.execute("pragma wal_checkpoint(passive)").fetchall()
                connection.set_progress_handler(_rest, _STEPS)
                tables = [name for (name,) in connection.execute(_TABLES).fetchall()]
                looks = (connection.execute(f'pragma quick_check("{name}")').fetchall() for name in tables)
                found = next((str(look[0][0]) for look in looks if look != [("ok",)]), "")
                return str(self.named(apsw.CorruptError(found))) if found else ""
        except apsw.CorruptError as error:
            return str(self.named(error))
        except apsw.Error as error:
            raise self.named(error) from error

    def gone(self) -> StoreUnreachable | None:
        """The error for a file or log that was deleted or replaced: what is written to it then, nobody finds again."""
        if self._known is None:
            return None
        if _identity(self.path) != self._known:
            text = "it was deleted or replaced while it was open. Stop Segue, put the file back or restore a backup."
            return StoreUnreachable(f"{self.path}: {text}")
        beside = Path(f"{self.path}-wal")
        found = _identity(beside)
        self._known_log = self._known_log or found
        if found == self._known_log:
            return None
        text = "was deleted or replaced while it was open. Stop Segue with SIGTERM, which saves what was in it."
        return StoreUnreachable(f"{beside} {text}")

    def reader(self) -> apsw.Connection:
        """A connection that can't write."""
        try:
            connection = self._connect()
            connection.execute("pragma query_only = on")
        except apsw.Error as error:
            raise self.named(error) from error
        return connection

    def folder(self) -> LogFolder:
        """Folds the log beside the writer."""
        try:
            return LogFolder(self._connect())
        except apsw.Error as error:
            raise self.named(error) from error

    def copy_to(self, path: Path) -> None:
        """A whole copy in a new file, as of this moment, whoever writes meanwhile."""
        try:
            connection = self._connect()
            try:
                connection.execute("vacuum into ?", (str(path),))
            finally:
                connection.close()
        except apsw.Error as error:
            raise self.named(error) from error
        with path.open("rb") as copy:
            os.fsync(copy.fileno())

    def scrub(self) -> bool:
        """Empty the log and overwrite what is unused in the file; False if somebody was in the way."""
        try:
            with closing(self._connect()) as connection, closing(Slack(connection, self.path, self._vfs)) as slack:
                return slack.wipe()
        except apsw.Error as error:
            raise self.named(error) from error

    def named(self, error: apsw.Error) -> Exception:
        """Segue's error for one of SQLite's; one that only a mistake in our SQL can cause stays as it is."""
        for kinds, ours, text in _MEANINGS:
            if isinstance(error, kinds):
                return ours(f"{self.path}: {text} (SQLite says: {error})")
        return too_long() if isinstance(error, apsw.TooBigError) else error

    def _make(self) -> None:
        """Make an empty file that only we can read, if there is none: conversations are private."""
        try:
            # Never opened if it exists: closing it would drop the locks that SQLite holds on it in this process.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError as error:
            if self.path.is_dir():
                raise StoreUnreachable(f"{self.path} is a folder. Name a file in it.") from error
        except (FileNotFoundError, NotADirectoryError) as error:
            raise StoreUnreachable(f"There is no folder {self.path.parent}. Make it, or name another.") from error
        except OSError as error:
            if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
                raise StoreReadOnly(f"{self.path.parent} can't be written to. {_PERMIT}") from error
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                raise StoreFull(f"{self.path} can't be made: the disk is full. Make room and try again.") from error
            raise StoreUnreachable(f"{self.path} can't be made: {error.strerror}.") from error

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(
            str(self.path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=self._vfs, statementcachesize=1000
        )
        connection.set_busy_handler(self._wait)
        connection.create_scalar_function("segue_now", lambda *_: self._clock(), 0)
        connection.create_scalar_function("segue_beats", self._note_beats, 1)
        # Else a join is planned anew each time its arguments change, which costs more than running it.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection.execute(_SETTINGS).fetchall()  # to the end: a statement that has rows waits for them to be taken
        if self._vfs is None:
            keep_log(connection)
        return connection

    def _note_beats(self, *beats: Any) -> int:
        (count,) = beats
        return note(self.path, count) if self._vfs is None else int(count)

    def _wait(self, times: int) -> bool:
        """Try for a lock every millisecond: SQLite's own pauses grow until a busy neighbour is never caught resting."""
        time.sleep(0.001)
        return times < self._patience * 1000

    def _recognise(self, connection: apsw.Connection) -> int:
        """The version of the file; nothing is written, so that a file that isn't ours stays as it is."""
        if connection.readonly("main"):
            raise StoreReadOnly(f"{self.path} can't be written to. {_PERMIT}")
        connection.execute("begin")
        version = self._version(connection)
        connection.execute("commit")
        return version

    def _version(self, connection: apsw.Connection) -> int:
        """The version of our schema in it, 0 if it is empty; another program's file is refused."""
        ((application,), (version,)) = connection.execute("pragma application_id; pragma user_version")
        if application != APPLICATION:
            ((objects,),) = connection.execute("select count(*) from sqlite_schema")
            if application or version or objects:
                raise StoreCorrupt(f"{self.path} is a database of another program. Name another file for Segue's.")
        return int(version)

    def _refuse_unlike(self, connection: apsw.Connection, steps: Steps) -> None:
        """Refuse a file whose tables aren't those of its version: a query would fail on it later, in other words."""
        version = self._version(connection)
        if version and (lacking := difference(version, shape_in(connection), steps)):
            raise StoreCorrupt(f"{self.path}: {unlike(version, lacking)}")

    def _log_ahead(self, connection: apsw.Connection) -> None:
        """Write-ahead log: readers never wait. The switch takes a lock that SQLite itself doesn't wait for."""
        deadline = time.monotonic() + self._patience
        while True:
            try:
                ((mode,),) = connection.execute("pragma journal_mode = wal")
            except apsw.BusyError:
                if time.monotonic() > deadline:
                    raise
            else:
                if mode == "wal":
                    return
                if time.monotonic() > deadline:
                    raise StoreUnreachable(f"{self.path}: its file system can't share memory. Use a local disk.")
            time.sleep(0.005)

    def _migrate(self, connection: apsw.Connection, steps: Steps, probe: Probe) -> None:
        while pending(steps, self._recognise(connection), str(self.path)):
            connection.execute("begin immediate")
            try:
                todo = pending(steps, self._version(connection), str(self.path))
                if todo:
                    self._step(connection, *todo[0], probe)
            finally:
                if connection.in_transaction:
                    connection.execute("rollback")

    def _step(self, connection: apsw.Connection, number: int, script: str, probe: Probe) -> None:
        """One migration and the version that it makes, in one transaction; foreign keys are checked at its end."""
        probe(Point.MIGRATION_BEGUN)
        connection.execute(script).fetchall()
        broken = connection.execute("pragma foreign_key_check").fetchall()
        if broken:
            raise StoreCorrupt(f"{self.path}: a row of {broken[0][0]} points at none. Restore a backup.")
        connection.execute(f"pragma application_id = {APPLICATION}; pragma user_version = {number}")
        probe(Point.MIGRATION_DONE)
        connection.execute("commit")
        probe(Point.MIGRATION_COMMITTED)


def keep_log(connection: apsw.Connection) -> None:
    """Leave the log beside the file when it is closed: a file without one was taken away from it."""
    yes = c_int(1)
    connection.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, addressof(yes))


def _rest() -> bool:
    """Leave the disk to others for a moment, and go on."""
    time.sleep(_REST)
    return False


def _write_anew(connection: apsw.Connection) -> None:
    """Write the file anew, once after the upgrade that asked for it: free pages of before hold what was overwritten."""
    if not connection.execute("select 1 from sqlite_schema where name = 'settings'").fetchall():
        return
    if connection.execute("select 1 from settings where name = 'vacuum'").fetchall():
        # Whoever else has the file open may be in the way: then the next one to open it does it.
        with suppress(apsw.BusyError):
            connection.execute("vacuum")
            connection.execute("delete from settings where name = 'vacuum'")
            connection.execute("pragma wal_checkpoint(truncate)").fetchall()


def _sync_folder(folder: Path) -> None:
    """Make sure of the names in a folder when the power goes.

    SQLite does so for a log that it made itself, not for one that another process made and only looked at: that log's
    name could go, and all that is in it with it.
    """
    # As for SQLite, it is no reason to stop if a file system doesn't let folders be synced.
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and number of a file; None if it can't be found."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
