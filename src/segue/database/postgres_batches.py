"""Batches: statements that PostgreSQL runs in one call, each with a snapshot of its own, as if they came one by one.

A batch of a shape that comes again and again becomes a function that lives as long as its connection. Its statements
are planned once; their rows come back as JSON.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import asyncpg
import msgspec

from segue.core.contracts.database import Row, Statement
from segue.database.statements import Compiled
from segue.database.transactions import Moved

_OFTEN = 3
"""Times that a shape comes before it is worth a function."""
_MOST_SHAPES = 200
_MOST_ARGUMENTS = 100
"""As many as a function of PostgreSQL can have."""
_KINDS = ("select", "insert", "update", "delete", "with")
_MOVED = "SGMVD"
_REAL = frozenset({"float4", "float8", "numeric"})
_NUMBER = re.compile(r"\$(\d+)")


class Part(NamedTuple):
    """One statement of a batch: its query, and what is asked of its rows."""

    name: str
    must: bool
    wanted: bool


Shape = tuple[Part, ...]


class _Described(NamedTuple):
    """The types of a query's arguments, and of the columns of its rows."""

    arguments: list[str]
    columns: list[str]


class _Function(NamedTuple):
    make: str
    call: str
    reals: list[list[int]]
    """For each statement whose rows are wanted, the columns that are no whole numbers: JSON doesn't tell."""


class Batches:
    """Knows the functions of one database's connections."""

    def __init__(self, queries: Mapping[str, Compiled]) -> None:
        self._queries = queries
        self._described: dict[str, _Described] = {}
        self._asked: Counter[Shape] = Counter()
        self._functions: dict[Shape, _Function] = {}
        self._made: WeakKeyDictionary[asyncpg.Connection, set[Shape]] = WeakKeyDictionary()
        self._allowed = True

    async def ready(self, connection: asyncpg.Connection, shape: Shape) -> bool:
        """Whether a connection runs this shape in one call; outside a transaction it is made to, if that pays."""
        made = self._made.setdefault(connection, set())
        if shape in made or not self._allowed or connection.is_in_transaction():
            return shape in made
        if shape not in self._functions and not await self._describe(connection, shape):
            return False
        try:
            await connection.execute(self._functions[shape].make)
        except asyncpg.InsufficientPrivilegeError:
            # A host may take the right to temporary things away: then statements go one by one.
            self._allowed = False
            return False
        made.add(shape)
        return True

    async def run(
        self, connection: asyncpg.Connection, shape: Shape, statements: Sequence[Statement]
    ) -> list[list[Row]]:
        """The rows of those that are wanted; `Moved` if one that must found nothing."""
        function = self._functions[shape]
        arguments = [s.arguments[name] for s in statements for name in self._queries[s.name].order]
        try:
            told = await connection.fetchval(function.call, *arguments)
        except asyncpg.PostgresError as error:
            if error.sqlstate == _MOVED:
                raise Moved from None
            raise
        found: list[list[Any]] = msgspec.json.decode(told)
        for rows, reals in zip(found, function.reals, strict=True):
            for row in rows:
                for at in reals:
                    row[at] = None if row[at] is None else float(row[at])
        return found

    async def _describe(self, connection: asyncpg.Connection, shape: Shape) -> bool:
        """Write the function of a shape, if it has come often enough and can be one."""
        self._asked[shape] += 1
        if self._asked[shape] < _OFTEN or len(self._functions) >= _MOST_SHAPES:
            if len(self._asked) > _MOST_SHAPES * 10:
                self._asked.clear()
            return False
        queries = [self._queries[part.name] for part in shape]
        if sum(len(query.order) for query in queries) > _MOST_ARGUMENTS:
            return False
        if not all(query.sql.startswith(_KINDS) for query in queries):  # a function has no savepoints
            return False
        for name in {part.name for part in shape} - self._described.keys():
            prepared = await connection.prepare(self._queries[name].sql)
            arguments = [kind.name for kind in prepared.get_parameters()]
            self._described[name] = _Described(arguments, [each.type.name for each in prepared.get_attributes()])
        if shape not in self._functions:  # others may have come meanwhile
            self._functions[shape] = self._written(shape, f"pg_temp.batch_{len(self._functions)}")
        return True

    def _written(self, shape: Shape, name: str) -> _Function:
        types: list[str] = []
        steps: list[str] = []
        told: list[str] = []
        reals: list[list[int]] = []
        for n, part in enumerate(shape):
            before, described = len(types), self._described[part.name]
            steps.append(_step(_numbered(self._queries[part.name].sql, before), part, described, f"_r{n}"))
            types += described.arguments
            if part.wanted:
                told.append(f"_r{n}")
                reals.append([at for at, kind in enumerate(described.columns) if kind in _REAL])
        variables = "".join(f"{each} text; " for each in told)
        body = (
            f"#variable_conflict use_column\ndeclare _n bigint; {variables}\nbegin\n{chr(10).join(steps)}\n"
            f"return '[' || concat_ws(',', {', '.join(told) or 'null'}) || ']';\nend"
        )
        marks = ", ".join(f"${at + 1}" for at in range(len(types)))
        head = f"create or replace function {name}({', '.join(types)}) returns text language plpgsql"
        return _Function(f"{head} as $batch${body}$batch$", f"select {name}({marks})", reals)


def _numbered(sql: str, before: int) -> str:
    """A query whose arguments follow those of the statements before it."""
    return _NUMBER.sub(lambda found: f"${int(found[1]) + before}", sql)


def _step(sql: str, part: Part, described: _Described, told: str) -> str:
    """One statement as the function runs it."""
    refuse = f"raise exception 'moved' using errcode = '{_MOVED}'; end if;"
    if part.wanted and not described.columns:
        return f"{sql}; {told} := '[]';"
    if part.wanted:
        columns = ", ".join(f"_c{n}" for n in range(len(described.columns)))
        rows = f"coalesce(json_agg(json_build_array({columns})), '[]')::text"
        run = f"with _s({columns}) as ({sql}) select {rows} into {told} from _s;"  # noqa: S608 -- our own queries
        return run + (f" if {told} = '[]' then {refuse}" if part.must else "")
    if not described.columns:
        return f"{sql};" + (f" get diagnostics _n = row_count; if _n = 0 then {refuse}" if part.must else "")
    if part.must:
        return f"with _s as ({sql}) select count(*) into _n from _s; if _n = 0 then {refuse}"  # noqa: S608
    return f"perform {sql.removeprefix('select')};"
