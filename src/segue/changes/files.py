"""Files in the database: their bytes in chunks, each of which is a transaction of its own.

Law: a path has bytes only once all of them are here, and then they never change.
"""

import msgspec

from segue.changes.rows import each, first, one
from segue.core.contracts.database import Transaction
from segue.core.values import Moment, Value
from segue.database.statements import q

_PAGE = 1000
_MARK = "files_swept"


class StoredFile(Value, frozen=True):
    """A file: whose bytes it has, and how many."""

    content: str
    size: int


def begin(id: str) -> Transaction[None]:
    """Begin to store bytes."""
    yield q.begin_file(id=id)


def add_chunk(id: str, n: int, chunk: bytes) -> Transaction[None]:
    """Store the next of them."""
    yield q.add_file_chunk(content=id, n=n, bytes=chunk)


def finish(id: str, path: str, size: int) -> Transaction[None]:
    """Give them their path; if it has a file already, that one counts as kept now."""
    content = yield from one(str, q.name_file(path=path, content=id, size=size))
    if content == id:
        yield q.end_file(id=id)
    else:
        yield q.drop_file_content(id=id)


def drop(id: str) -> Transaction[None]:
    """Delete bytes that never became a file."""
    yield q.drop_file_content(id=id)


def find(path: str) -> Transaction[StoredFile | None]:
    """The file at a path."""
    return (yield from first(StoredFile, q.stored_file(path=path)))


def find_chunk(content: str, n: int) -> Transaction[bytes | None]:
    """One chunk of a file's bytes; None if the file was deleted."""
    return (yield from first(bytes, q.file_chunk(content=content, n=n)))


def list_kept(folder: str, since: Moment, until: Moment) -> Transaction[list[str]]:
    """The paths in a folder of files that were last kept after one moment and up to another."""
    found: list[str] = []
    after, last = f"{folder}/", f"{folder}0"
    while True:
        between = {"after": after, "last": last, "since": since, "until": until, "count": _PAGE}
        page = yield from each(str, q.stored_files(**between))
        found += page
        if len(page) < _PAGE:
            return found
        after = page[-1]


def list_present(paths: list[str]) -> Transaction[list[str]]:
    """Those of some paths that there are files at."""
    return (yield from each(str, q.stored_files_of(paths=msgspec.json.encode(paths).decode())))


def delete(path: str, until: Moment) -> Transaction[bool]:
    """Delete a file with its bytes unless it was kept again since then; returns whether this did."""
    content = yield from first(str, q.drop_file(path=path, until=until))
    if content is None:
        return False
    yield q.drop_file_content(id=content)
    return True


def delete_halves(until: Moment) -> Transaction[int]:
    """Delete bytes that began to come by then and never became a file; returns of how many."""
    return len((yield q.drop_file_halves(until=until)))


def read_mark() -> Transaction[Moment]:
    """The moment up to which every file was found named."""
    return float((yield from first(str, q.setting(name=_MARK))) or 0.0)


def keep_mark(until: Moment) -> Transaction[None]:
    """Remember that moment."""
    yield q.set_setting(name=_MARK, value=str(until))


def now() -> Transaction[Moment]:
    """The time by the database's clock."""
    return (yield from one(float, q.database_time()))
