"""The shape of a database: its tables and their columns, as each version's migrations make them.

An early Segue changed migrations after they had been used. A database of those days has a version that says one thing
and tables that say another: it is told apart here, before a query fails on it.
"""

from collections.abc import Iterable, Mapping
from functools import cache

import apsw

from segue.database.transactions import Steps

Shape = Mapping[str, frozenset[str]]
"""Columns by table."""
_COLUMNS = """
    select m.name, c.name from sqlite_schema m join pragma_table_info(m.name) c
    where m.type = 'table' and m.name not like 'search%' and m.name not like 'sqlite%'
"""


def shape_of(columns: Iterable[tuple[str, str]]) -> Shape:
    """Columns by table."""
    found: dict[str, set[str]] = {}
    for table, column in columns:
        found.setdefault(table, set()).add(column)
    return {table: frozenset(names) for table, names in found.items()}


def shape_in(connection: apsw.Connection) -> Shape:
    """The shape of an open SQLite file."""
    return shape_of((str(table), str(column)) for table, column in connection.execute(_COLUMNS))


def difference(version: int, shape: Shape, steps: Steps) -> str:
    """The difference between a database and what SQLite's migrations make of its version, in words; empty if none."""
    for table, columns in sorted(_expected(version, tuple(steps)).items()):
        if table not in shape:
            return f"it has no table {table}"
        if missing := sorted(columns - shape[table]):
            return f"its table {table} has no column {missing[0]}"
    return ""


def unlike(version: int, lacking: str) -> str:
    """The words for a database whose tables aren't those of its version."""
    return (
        f"it says that it is of version {version}, but {lacking}: a Segue from before the first release made it, and "
        "no upgrade leads from there. Move it aside and start anew."
    )


@cache
def _expected(version: int, steps: tuple[tuple[int, str], ...]) -> Shape:
    connection = apsw.Connection(":memory:")
    try:
        for number, script in sorted(steps):
            if number <= version:
                connection.execute(script).fetchall()
        return shape_in(connection)
    finally:
        connection.close()
