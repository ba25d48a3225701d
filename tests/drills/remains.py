"""Remains: every place in a database, its log and its files in which a word still stands."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import asyncpg


async def remains(where: str, word: str) -> list[str]:
    """Where a word still stands in a database: rows, indexes, log and free pages, as far as each can be looked at."""
    if where.startswith("postgresql://"):
        return await _on_server(where, word)
    return [*_in_file(Path(where), word)]


def files_with(folder: Path, word: str) -> list[str]:
    """The files under a folder that hold a word."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [path.relative_to(folder).as_posix() for path in found if word.encode() in path.read_bytes()]


def _in_file(path: Path, word: str) -> Iterator[str]:
    for part in ("", "-wal", "-shm"):
        file = Path(f"{path}{part}")
        if file.exists() and word.encode() in file.read_bytes():
            yield file.name
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.execute("create virtual table temp.words using fts5vocab(main, search, 'row')")
        if connection.execute("select 1 from temp.words where instr(term, ?)", (word,)).fetchall():
            yield "the index's vocabulary"
        tables = connection.execute("select name from sqlite_schema where type = 'table' and name not like 'search%'")
        for (table,) in tables.fetchall():
            for row in connection.execute(f'select * from "{table}"'):
                if any(word in str(value) for value in row):
                    yield f"{table}: {row}"
    finally:
        connection.close()


async def _on_server(dsn: str, word: str) -> list[str]:
    connection = await asyncpg.connect(dsn)
    try:
        tables = await connection.fetch("select tablename from pg_tables where schemaname = 'segue'")
        found = []
        for (table,) in tables:
            # The bytes of files are shown in hexadecimal.
            stands = "strpos(t::text, $1) > 0 or strpos(t::text, $2) > 0"
            rows = await connection.fetch(
                f"select t::text from segue.{table} t where {stands}", word, word.encode().hex()
            )
            found += [f"{table}: {row}" for (row,) in rows]
    finally:
        await connection.close()
    return found + await _in_indexes(dsn, word)


async def _in_indexes(dsn: str, word: str) -> list[str]:
    """The indexes whose files have a word in any byte, as only a superuser can look."""
    connection = await asyncpg.connect(dsn, user="postgres")
    try:
        await connection.execute("checkpoint")
        found = await connection.fetch(
            """
            select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
            where n.nspname in ('segue', 'pg_toast') and c.relkind = 'i' and pg_relation_size(c.oid) > 0
            and position($1::bytea in pg_read_binary_file(pg_relation_filepath(c.oid))) > 0 order by c.relname
            """,
            word.encode(),
        )
        return [f"index {name}" for (name,) in found]
    finally:
        await connection.close()
