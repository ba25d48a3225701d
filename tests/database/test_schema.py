"""The schema and the named queries: the same on both databases, written down, and all of them in use."""

import ast
from collections.abc import Iterator
from pathlib import Path

import asyncpg

import segue
from segue.database.statements import POSTGRES, SQLITE, compile_for, migrations
from tests.changes.world import Engine, World
from tests.database.schema import schema

SOURCE = Path(segue.__file__).parent
DOCUMENT = Path(__file__).parents[2] / "docs" / "schema.sql"


def calls() -> Iterator[tuple[str, set[str] | None, str]]:
    """Every `q.NAME(...)` in the source: its name, its arguments (None if some are spread) and where it is."""
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                of = node.func.value
                if isinstance(of, ast.Name) and of.id == "q":
                    names = {keyword.arg for keyword in node.keywords}
                    given = None if None in names else {name for name in names if name}
                    yield node.func.attr, given, f"{file.relative_to(SOURCE)}:{node.lineno}"


def test_the_written_schema_is_that_of_all_migrations_from_zero() -> None:
    assert DOCUMENT.read_text("utf-8") == schema(), "write it anew: python -m tests.database.schema > docs/schema.sql"


def test_every_query_is_used_and_every_use_is_a_query() -> None:
    known, used = set(compile_for(SQLITE)), {name for name, _, _ in calls()}
    assert used == known


def test_every_query_gets_the_arguments_that_it_names() -> None:
    wanted: dict[str, set[str]] = {}
    for dialect in (SQLITE, POSTGRES):
        for name, query in compile_for(dialect).items():
            wanted.setdefault(name, set()).update(query.order)
    wrong = [(where, name, given ^ wanted[name]) for name, given, where in calls() if given not in (None, wanted[name])]
    assert wrong == []


def test_both_databases_have_the_same_queries() -> None:
    assert compile_for(SQLITE).keys() == compile_for(POSTGRES).keys()


async def test_every_query_is_understood_by_postgresql(today_dsn: str) -> None:
    connection = await asyncpg.connect(today_dsn, server_settings={"search_path": "segue"})
    for query in compile_for(POSTGRES).values():
        statement = await connection.prepare(query.sql)
        assert len(statement.get_parameters()) == len(query.order)
    await connection.close()


async def shape(world: World) -> dict[str, object]:
    """Tables, columns, what may be null, references and indexes."""
    if world.engine is Engine.SQLITE:
        columns = (
            'select t.name, c.name, lower(c.type), c."notnull" or c.pk > 0 '
            "from sqlite_schema t, pragma_table_info(t.name) c "
            "where t.type = 'table' and t.name not like 'search%'"
        )
        references = (
            'select t.name, f."from", f."table", f."to" from sqlite_schema t, pragma_foreign_key_list(t.name) f '
            "where t.type = 'table'"
        )
        indexes = (
            'select t.name, i.name, i."unique" from sqlite_schema t, pragma_index_list(t.name) i '
            "where i.origin = 'c' and t.name not like 'search%'"
        )
    else:
        columns = (
            "select table_name, column_name, data_type, is_nullable = 'NO' from information_schema.columns "
            "where table_schema = 'segue' and table_name not in ('version', 'search')"
        )
        references = (
            "select r.relname, a.attname, f.relname, b.attname "
            "from pg_constraint c join pg_class r on r.oid = c.conrelid join pg_class f on f.oid = c.confrelid, "
            "unnest(c.conkey, c.confkey) as k (here, there), "
            "pg_attribute a, pg_attribute b where c.contype = 'f' "
            "and a.attrelid = c.conrelid and a.attnum = k.here and b.attrelid = c.confrelid and b.attnum = k.there "
            "and c.connamespace = 'segue'::regnamespace and r.relname <> 'search'"
        )
        indexes = (
            "select t.relname, x.relname, i.indisunique from pg_index i join pg_class x on x.oid = i.indexrelid "
            "join pg_class t on t.oid = i.indrelid where t.relnamespace = 'segue'::regnamespace "
            "and t.relname not in ('version', 'search') "
            "and not exists (select 1 from pg_constraint c where c.conindid = i.indexrelid and c.contype in ('p', 'u'))"
        )
    types = {"bigint": "integer", "double precision": "real", "bytea": "blob"}
    return {
        "columns": {(t, c, types.get(kind, kind), bool(full)) for t, c, kind, full in await world.raw(columns)},
        "references": {(t, *row) for t, *row in await world.raw(references)},
        "indexes": {(t, name, bool(unique)) for t, name, unique in await world.raw(indexes)},
    }


async def test_both_databases_have_the_same_tables_columns_references_and_indexes(
    tmp_path: Path, today_dsn: str
) -> None:
    lite = await World.open(Engine.SQLITE, tmp_path / "segue.db")
    other = await World.open(Engine.POSTGRES, today_dsn)
    one, two = await shape(lite), await shape(other)
    await lite.close()
    await other.close()
    assert one == two
    assert all(one.values())


async def test_every_step_has_run(world: World) -> None:
    steps = [number for number, _ in migrations(SQLITE)]
    assert steps == [number for number, _ in migrations(POSTGRES)] == list(range(1, len(steps) + 1))
    if world.engine is Engine.SQLITE:
        assert await world.raw("pragma user_version") == [(steps[-1],)]
    else:
        assert await world.raw("select number from version order by number") == [(step,) for step in steps]
