"""Today's schema as SQLite itself tells it: `python -m tests.database.schema > docs/schema.sql`."""

import re
import sys

import apsw

from segue.database.statements import SQLITE, migrations

HEADER = """\
-- The schema after all migrations, as SQLite tells it; PostgreSQL has the same tables and columns.
-- Written by `python -m tests.database.schema > docs/schema.sql`, never by hand.
"""


def schema() -> str:
    """Every table with its indexes and triggers, in the order in which they were made."""
    connection = apsw.Connection(":memory:")
    for _, script in migrations(SQLITE):
        connection.execute(script)
    rows = connection.execute(
        "select type, name, tbl_name, sql from sqlite_schema where sql is not null order by rowid"
    )
    found: dict[str, list[str]] = {}
    for kind, name, table, sql in rows.fetchall():
        # A virtual table keeps its own tables, which are its own business.
        if kind == "table" and re.match(r"search_(data|idx|content|docsize|config)$", str(name)):
            continue
        found.setdefault(str(table), []).append(
            re.sub(r"^CREATE (UNIQUE |VIRTUAL )?(\w+)", lambda m: m[0].lower(), str(sql))
        )
    tables = (";\n".join(statements) + ";\n" for statements in found.values())
    return "\n".join([HEADER, *tables])


if __name__ == "__main__":
    sys.stdout.write(schema())
