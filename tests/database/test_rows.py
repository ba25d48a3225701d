"""Rows: each query's columns are the fields of what its rows become, and nobody else counts columns."""

import ast
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import apsw
import apsw.ext
import asyncpg
import pytest

import segue
from segue.changes.rows import columns_of, each, first, one
from segue.core.lanes import Kind, Lane
from segue.core.transcripts import Entry, Session, Tip
from segue.core.values import SessionId, Value
from segue.database.statements import POSTGRES, SQLITE, compile_for, migrations, q

SOURCE = Path(segue.__file__).parent
READERS = {"each", "first", "one", "RowsOf"}
HELD_FOR_TRUTH = (ast.Expr, ast.If, ast.While, ast.IfExp, ast.BoolOp, ast.UnaryOp)


def trees() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(SOURCE.rglob("*.py")):
        yield file.relative_to(SOURCE).as_posix(), ast.parse(file.read_text("utf-8"))


def queries_in(node: ast.AST) -> list[str]:
    return [
        part.func.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)
        if isinstance(part.func.value, ast.Name) and part.func.value.id == "q"
    ]


def pairs() -> Iterator[tuple[str, str, Any]]:
    """Every query that is read, where, and the type that its rows become."""
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in READERS:
                kind, statement = node.args
                module = import_module("segue." + path.removesuffix(".py").replace("/", "."))
                made = eval(ast.unparse(kind), vars(module))
                found = queries_in(statement)
                assert found, f"{path}:{node.lineno}: name the query where its rows are read"
                for name in found:
                    yield name, f"{path}:{node.lineno}", made


def fits(columns: list[str], made: Any) -> bool:
    """Whether columns are named as fields; inside another value, with or without its name."""
    wanted = columns_of(made)
    if wanted == [""]:
        return len(columns) == 1
    return len(columns) == len(wanted) and all(
        f"_{field}".endswith(f"_{column}") for column, field in zip(columns, wanted, strict=True)
    )


def wrong(columns: dict[str, list[str]]) -> list[tuple[str, str, list[str], list[str]]]:
    return [
        (where, name, columns[name], columns_of(made)) for name, where, made in pairs() if not fits(columns[name], made)
    ]


def test_columns_are_the_fields_of_their_values_in_sqlite() -> None:
    connection = apsw.Connection(":memory:")
    connection.create_scalar_function("segue_now", lambda *_: 0.0, 0)
    connection.create_scalar_function("segue_beats", lambda *_: 0, 1)
    for _, sql in migrations(SQLITE):
        connection.execute(sql)
    columns = {
        name: [column for column, _ in apsw.ext.query_info(connection, query.sql).description]
        for name, query in compile_for(SQLITE).items()
        if not query.sql.startswith(("savepoint", "rollback", "release"))
    }
    assert wrong(columns) == []


async def test_columns_are_the_fields_of_their_values_in_postgresql(today_dsn: str) -> None:
    connection = await asyncpg.connect(today_dsn, server_settings={"search_path": "segue"})
    columns = {}
    for name, query in compile_for(POSTGRES).items():
        statement = await connection.prepare(query.sql)
        columns[name] = [attribute.name for attribute in statement.get_attributes()]
    await connection.close()
    assert wrong(columns) == []


def handled(tree: ast.Module) -> Iterator[int]:
    """The lines on which the rows of a query are handled by hand: neither read by a type nor only counted."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Yield) or node.value is None or not queries_in(node.value):
            continue
        parent = parents[node]
        truth = isinstance(parent, HELD_FOR_TRUTH) or (
            isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
        )
        counted = (
            isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in {"bool", "len"}
        )
        if not (truth or counted):
            yield node.lineno


def test_nobody_takes_a_row_apart_by_hand() -> None:
    found = [f"{path}:{line}" for path, tree in trees() for line in handled(tree)]
    assert found == []


@pytest.mark.parametrize(
    "line", ["rows = yield q.a()", "[(x,)] = yield q.a()", "x = (yield q.a())[0]", "return (yield q.a())"]
)
def test_a_row_that_is_taken_apart_by_hand_is_found(line: str) -> None:
    assert list(handled(ast.parse(f"def f():\n    {line}"))) == [2]


class Spot(Value, frozen=True):
    lane: Lane | None
    kind: Kind
    tip: Tip | None
    open: bool


def run(steps: Any, rows: list[tuple[Any, ...]]) -> Any:
    """What a transaction of one statement returns when it is given these rows."""
    next(steps)
    with pytest.raises(StopIteration) as done:
        steps.send(rows)
    return done.value.value


@pytest.fixture(autouse=True)
def annotations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, Spot.__module__, sys.modules[__name__])


def test_a_row_becomes_a_value_with_values_in_it() -> None:
    lane = Lane.parse("telegram/bot//1//")
    statement = q.session(session="s")
    assert run(one(Spot, statement), [(lane.key, "group", "s", 2, 1)]) == Spot(
        lane, Kind.GROUP, Tip(SessionId("s"), 2), open=True
    )
    assert run(first(Spot, statement), [(None, "dm", None, None, 0)]) == Spot(None, Kind.DM, None, open=False)
    assert run(first(Spot, statement), []) is None
    assert run(each(int, statement), [(1,), (2,)]) == [1, 2]


def test_equal_authors_and_sources_are_one_object() -> None:
    row = ("s", 1, None, None, "agent", "", "", "[]", 0.0, 1, "i", "a")
    one_entry, other = run(each(Entry, q.entry(session="s", n=1)), [row, row])
    assert one_entry.author is other.author
    assert one_entry.source is other.source
    assert columns_of(Session)[-1] == "origin"
