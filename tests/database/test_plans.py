"""Plans: no query reads the whole of a table that grows, on either database, unless its reason stands here.

SQLite plans without statistics, so an empty file has the plans of a full one. PostgreSQL is asked with rows, statistics
and any arguments, and with all that reads whole tables made costly: what still does has no index that it could use.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import asyncpg

from segue.database.sqlite_file import SqliteFile
from segue.database.statements import POSTGRES, SQLITE, Compiled, compile_for, migrations
from segue.database.transactions import unheeded
from segue.store import open_driver
from tests.today import file_of_today

FEW = {"connections", "homes", "keeps", "partings", "replicas", "settings", "version", "windows"}
"""Tables with a row for each account, replica, open window or decision of the host."""
WAITING = {
    "audit_of_refused",
    "deliveries_dead",
    "deliveries_due",
    "deliveries_held",
    "deliveries_unsent",
    "forgettings_unclean",
    "handoffs_live",
    "letters_waiting",
    "questions_in_lane",
    "questions_open",
    "questions_to_approvers",
    "runs_unkept",
    "sessions_held",
    "sessions_ready",
    "sessions_unindexed",
    "turns_awaited",
}
"""Indexes of what waits for something, or is kept only up to a number: they are as short as that."""

ASKED, PRUNED, RARE = "a host asks for all of it", "rows that are over go in time", "a host does it to one person"
REASONS = {
    "count_blocks": ASKED,
    "add_beneath": "SQLite looks for rows that point at none only if there are any",
    "add_forgetting": "SQLite looks for rows that point at none only if there are any",
    "all_lanes": ASKED,
    "chat_merges": ASKED,
    "count_failed": ASKED,
    "everyones_grants": ASKED,
    "facts": ASKED,
    "forget_codes": PRUNED,
    "forget_name_in_turns": RARE,
    "forget_readings_astray": RARE,
    "forget_seen": "it stops at a number of the oldest",
    "forget_signed_out": PRUNED,
    "forget_tokens": PRUNED,
    "forget_tries": PRUNED,
    "known_people": ASKED,
    "last_forgetting": "it stops at the newest",
    "last_undo": "it stops at the newest",
    "parted": RARE,
    "search": "it is an index of words",
    "seen_message": ASKED,
    "sessions_awaited_by": RARE,
    "signed_out": PRUNED,
    "strangers": "codes go in time",
    "tokens": ASKED,
    "unspoken_merges": "one look a day for ids that nobody spoke by",
}
"""Queries that read a whole table, and why they may."""
ONLY_IN_POSTGRES = {"all_lanes", "last_forgetting", "last_undo", "parted", "sessions_awaited_by"}
ROWS = 2000
_SCAN = re.compile(r"^(?:SCAN (?P<scanned>\S+)|SEARCH (?P<searched>\S+) USING AUTOMATIC)(?:.* INDEX (?P<index>\w+))?")


def asked(queries: Mapping[str, Compiled]) -> Iterator[tuple[str, Compiled]]:
    """The queries that have a plan."""
    for name, query in queries.items():
        if query.sql.startswith(("select", "with", "insert", "update", "delete")):
            yield name, query


def scans_in_sqlite(connection: apsw.Connection, query: Compiled, tables: set[str]) -> set[str]:
    """The tables that a query reads from one end to the other, or indexes anew each time."""
    named = {table: {table} for table in tables}
    for table, alias in re.findall(rf"\b({'|'.join(sorted(tables))})\s+(?:as\s+)?(\w+)\b", query.sql):
        named.setdefault(alias, set()).add(table)
    found = set[str]()
    for *_, detail in connection.execute(f"explain query plan {query.sql}", [None] * len(query.order)):
        scan = _SCAN.match(str(detail))
        if scan and scan["index"] not in WAITING:
            found |= named.get(scan["scanned"] or scan["searched"], set())
    return found


def scans_in_postgres(plan: Mapping[str, Any]) -> Iterator[str]:
    """The tables that a plan reads from one end to the other, by themselves or by an index."""
    kind, by_index = plan["Node Type"], plan.get("Index Name")
    unbounded = kind in {"Index Scan", "Index Only Scan"} and "Index Cond" not in plan and by_index not in WAITING
    if kind == "Seq Scan" or unbounded:
        yield plan["Relation Name"]
    for below in plan.get("Plans", ()):
        yield from scans_in_postgres(below)


def unlisted(found: Mapping[str, set[str]]) -> dict[str, set[str]]:
    return {name: tables for name, tables in found.items() if tables and name not in REASONS}


async def fill(connection: asyncpg.Connection) -> None:
    """Give every table rows that are all different, half of them without what may be missing."""
    columns = await connection.fetch(
        "select table_name, column_name, data_type, is_nullable = 'YES' from information_schema.columns "
        "where table_schema = 'segue' and is_identity = 'NO' and table_name <> all ('{search,version}')"
    )
    checks = await connection.fetch(
        "select conrelid::regclass::text, conname from pg_constraint "
        "where contype in ('c', 'f') and connamespace = 'segue'::regnamespace"
    )
    tables: dict[str, dict[str, str]] = {}
    for table, column, kind, optional in columns:
        value = f"'{column}' || i" if kind == "text" else "convert_to(i::text, 'UTF8')" if kind == "bytea" else "i"
        tables.setdefault(table, {})[column] = f"case when i % 2 = 0 then {value} end" if optional else value
    script = [f'alter table {table} drop constraint "{check}"' for table, check in checks]
    script += [f"alter table {table} disable trigger user" for table in tables]
    for table, values in tables.items():
        names = ", ".join(f'"{column}"' for column in values)
        rows = f"select {', '.join(values.values())} from generate_series(1, {ROWS}) i"
        script.append(f"insert into {table} ({names}) {rows}")
    await connection.execute(";".join([*script, "analyze"]))


def test_sqlite_reads_no_table_that_grows(tmp_path: Path) -> None:
    file = SqliteFile(Path(file_of_today(tmp_path / "segue.db")), lambda: 0.0, 5.0, None)
    with closing(file.writer(migrations(SQLITE), unheeded)) as connection:
        tables = {str(name) for (name,) in connection.execute("select name from sqlite_schema where type = 'table'")}
        found = {n: scans_in_sqlite(connection, query, tables - FEW) for n, query in asked(compile_for(SQLITE))}
    assert unlisted(found) == {}
    assert {name for name in REASONS if not found[name]} == ONLY_IN_POSTGRES


async def test_postgresql_reads_no_table_that_grows(postgres_dsn: str) -> None:
    await (await open_driver(postgres_dsn)).close()
    connection = await asyncpg.connect(postgres_dsn, server_settings={"search_path": "segue"})
    await fill(connection)
    for setting in ("enable_seqscan", "enable_hashjoin", "enable_mergejoin"):
        await connection.execute(f"set {setting} = off")
    await connection.execute("set plan_cache_mode = force_generic_plan")
    found: dict[str, set[str]] = {}
    for name, query in asked(compile_for(POSTGRES)):
        nothing = f"({', '.join(['null'] * len(query.order))})" if query.order else ""
        await connection.execute(f"prepare asked as {query.sql}")
        [(plan,)] = await connection.fetch(f"explain (format json) execute asked{nothing}")
        await connection.execute("deallocate asked")
        found[name] = set(scans_in_postgres(json.loads(plan)[0]["Plan"])) - FEW
    await connection.close()
    assert unlisted(found) == {}
