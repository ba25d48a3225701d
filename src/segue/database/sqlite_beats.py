"""Heartbeats of gateways on a SQLite file, counted in it and noted beside it: they tell the file from a copy of it.

- A gateway that lives is written in the file, and its log stays beside the file when it is killed. A file in use
  without a log is a copy: it lacks what was said last. But any SQLite tool that opens the original folds the log into
  it and deletes the log. Then the file is the one that the note names, and holds the heartbeats of the note.
- A file with fewer heartbeats than its note is an older copy that was put back. Platforms know answers that it lacks,
  so a new era begins.
"""

import logging
import os
import time
from contextlib import closing
from pathlib import Path

import apsw
import msgspec

from segue.core.values import Value, make_id

log = logging.getLogger(__name__)

_READ_ONLY = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
_COUNT = "select coalesce(max(cast(value as integer)), 0) from settings where name = 'beats'"
_SET = "insert into settings (name, value) values (?, ?) on conflict (name) do update set value = excluded.value"


class BeatsNote(Value, frozen=True):
    """Heartbeats that a file surely holds, and which file that is."""

    device: int
    inode: int
    beats: int


def note(path: Path, beats: int) -> int:
    """Note beside a file how many heartbeats it holds; returns how many.

    Nothing waits for the disk: a note that a power cut takes back tells less, but nothing wrong.
    """
    new = path.with_name(f"{path.name}-beats.new")
    try:
        found = path.stat()
        new.write_bytes(msgspec.json.encode(BeatsNote(found.st_dev, found.st_ino, beats)))
        new.replace(_beside(path))
    except OSError as error:
        log.warning("heartbeats can't be noted beside %s: %s", path, error.strerror)
    return beats


def lacks_log(path: Path) -> bool:
    """Whether a gateway is alive by what is in a file, but the log that it writes isn't beside it."""
    if Path(f"{path}-wal").exists():
        return False
    try:
        with closing(_alone(path)) as connection:
            used = connection.table_exists("main", "replicas")
            return used and bool(connection.execute("select 1 from replicas limit 1").fetchall())
    except apsw.Error:
        return False  # Opening the file tells what is wrong with it.


def was_folded(path: Path) -> bool:
    """Whether a file without its log is the one that gateways used last, with all that was in its log."""
    noted = _noted(path)
    if noted is None:
        return False
    found = path.stat()
    with closing(_alone(path)) as connection:
        return (found.st_dev, found.st_ino) == (noted.device, noted.inode) and _beats(connection) >= noted.beats


def notice_older(path: Path, connection: apsw.Connection) -> None:
    """Begin a new era if an older copy of a file was put back."""
    noted = _noted(path)
    if noted is None or not connection.table_exists("main", "replicas") or _beats(connection) >= noted.beats:
        return
    log.warning("%s is an older copy that was put back: what was said after it was made isn't in it", path)
    with connection:
        connection.execute(_SET, ("era", f"{make_id(time.time(), os.urandom(10))}."))
        connection.execute(_SET, ("beats", str(noted.beats)))
        connection.execute("update replicas set expires = 0")


def _beats(connection: apsw.Connection) -> int:
    if not connection.table_exists("main", "settings"):
        return 0
    ((count,),) = connection.execute(_COUNT)
    return int(count)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}-beats")


def _noted(path: Path) -> BeatsNote | None:
    """The note beside a file; None if there is none, or if a power cut spoilt it."""
    try:
        return msgspec.json.decode(_beside(path).read_bytes(), type=BeatsNote)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _alone(path: Path) -> apsw.Connection:
    """A connection to a file alone: nothing is opened or made beside it."""
    return apsw.Connection(f"{path.as_uri()}?immutable=1", flags=_READ_ONLY)
