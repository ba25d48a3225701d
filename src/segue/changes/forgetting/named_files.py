"""Named files: the kept files that anything in the database names, read a page at a time."""

import re
from enum import StrEnum
from typing import assert_never

from segue.changes.rows import each
from segue.core.contracts.database import Transaction
from segue.core.values import Value
from segue.database.statements import q

_WHERE = re.compile(r"files/[0-9a-f]{2}/[0-9a-f]{64}")
_PAGE = 1000
_NEWEST = 2**62


class Naming(StrEnum):
    """The rows that name files: where most are named first."""

    ENTRIES = "entries"
    TURNS = "turns"
    DELIVERIES = "deliveries"
    JOURNAL = "journal"
    LETTERS = "letters"


class FileRow(Value, frozen=True):
    """A row that may name files, by its place in its table."""

    session: str = ""
    n: int = _NEWEST
    call: str = ""
    parts: str = ""


def page(naming: Naming, after: FileRow | None) -> Transaction[tuple[set[str], FileRow | None]]:
    """The files that a page of rows names, and the row that the next page follows; None after the last page."""
    rows = yield from _rows(naming, after)
    named = {where for row in rows for where in _WHERE.findall(row.parts)}
    return named, rows[-1] if len(rows) == _PAGE else None


def _rows(naming: Naming, after: FileRow | None) -> Transaction[list[FileRow]]:
    last, at = after or FileRow(), after or FileRow(n=0)
    match naming:
        case Naming.ENTRIES:
            return (yield from each(FileRow, q.files_in_entries(before=last.n, count=_PAGE)))
        case Naming.DELIVERIES:
            return (yield from each(FileRow, q.files_in_deliveries(before=last.n, count=_PAGE)))
        case Naming.LETTERS:
            return (yield from each(FileRow, q.files_in_letters(before=last.n, count=_PAGE)))
        case Naming.TURNS:
            return (yield from each(FileRow, q.files_in_turns(session=at.session, n=at.n, count=_PAGE)))
        case Naming.JOURNAL:
            return (yield from each(FileRow, q.files_in_journal(session=at.session, n=at.n, call=at.call, count=_PAGE)))
        case _:
            assert_never(naming)
