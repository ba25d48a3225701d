"""The named queries in queries/*.sql, and what the two databases call the few things that they name differently.

A query is `-- name: WORD`, a sentence of purpose, then the SQL with `:name` arguments and `{token}` differences. One
that the databases write differently stands twice, as `-- name: WORD (sqlite)` and as `-- name: WORD (postgres)`.
Columns that several queries read stand once, as `-- columns: WORD`, and are a token, too.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from segue.core.contracts.database import Statement
from segue.core.values import Value

_HEADER = re.compile(
    r"^-- (?P<what>name|columns): (?P<name>[a-z0-9_]+)(?: \((?P<only>sqlite|postgres)\))?$", re.MULTILINE
)
_ARGUMENT = re.compile(r"'[^']*'|--[^\n]*|(?<!:):(?P<name>[a-z0-9_]+)")
_ONLY = re.compile(r"^-- only: (?P<only>sqlite|postgres)\n(?P<body>.*?)^-- end\n", re.MULTILINE | re.DOTALL)


_WRITES = ("insert", "update", "delete")
_LOCKS = "select pg_advisory_xact_lock"
_WAITS = re.compile(r"\bfor\b|_lock\(")


class Dialect(Value, frozen=True, eq=False):
    """One database's words for what the other says differently."""

    name: str
    tokens: Mapping[str, str]

    def text(self, sql: str) -> str:
        """SQL in this dialect."""
        for token, word in self.tokens.items():
            sql = sql.replace("{" + token + "}", word)
        return sql


SQLITE = Dialect(
    "sqlite",
    {
        "serial": "integer primary key",
        "int": "integer",
        "real": "real",
        "key": "text",
        "bytes": "blob",
        "strict": "strict",
        "each": "json_each",
        # Tables are read in the order in which they are written: without statistics SQLite may begin at the other end.
        "cross_join": "cross join",
        # A table that is read by its key alone lies in the order of that key.
        "clustered": "strict, without rowid",
        # The driver defines this function, so that drills and tests can move the database's clock.
        "now": "segue_now()",
        "for_update": "",
        "for_share": "",
        "skip_locked": "",
        # Whether a row was changed: SQLite tells how many. It runs a statement that returns rows like one with a
        # trigger, under a journal of its own, which takes twice as long.
        "counted": "",
        # SQLite can name a table that comes later in a constraint, PostgreSQL adds the constraint afterwards.
        "tip_reference": ", foreign key (tip_session, tip) references entries (session, n)",
    },
)
POSTGRES = Dialect(
    "postgres",
    {
        "serial": "bigint generated always as identity primary key",
        "int": "bigint",
        "real": "double precision",
        "key": 'text collate "C"',
        "bytes": "bytea",
        "strict": "",
        "each": "json_array_elements_text",
        "cross_join": "join",
        "clustered": "",
        "now": "cast(extract(epoch from clock_timestamp()) as double precision)",
        # Not `for update`: it would wait for everybody who only refers to the row, and they for us.
        "for_update": "for no key update",
        "for_share": "for share",
        "skip_locked": "for no key update skip locked",
        "counted": "returning 1",
        "tip_reference": "",
    },
)


class Compiled(Value, frozen=True):
    """A query as a database takes it, with the order of its arguments."""

    sql: str
    order: tuple[str, ...]
    counted: bool = False
    """It gives a row for each one that it changed, by `{counted}`."""

    @property
    def silent(self) -> bool:
        """Whether nobody reads rows of it: it only writes, or only takes a lock that has a name."""
        return self.sql.startswith(_LOCKS) or (self.sql.startswith(_WRITES) and "returning" not in self.sql)

    @property
    def reads(self) -> bool:
        """Whether it only reads, and waits for nobody."""
        return self.sql.startswith("select") and not _WAITS.search(self.sql)


class Queries:
    """Makes statements by name: `q.bound_session(lane=key)`."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def __getattr__(self, name: str) -> "_Named":
        if name not in self._names:
            raise AttributeError(f"no query is named {name!r}")
        made = _Named(name)
        setattr(self, name, made)
        return made


class _Named:
    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, **arguments: Any) -> Statement:
        return Statement(self._name, arguments)


def _load() -> dict[tuple[str, str], str]:
    queries: dict[tuple[str, str], str] = {}
    columns: dict[str, str] = {}
    for file in sorted(files("segue.database").joinpath("queries").iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".sql"):
            continue
        _, *pieces = _HEADER.split(file.read_text("utf-8"))
        for what, name, only, body in zip(*(pieces[n::4] for n in range(4)), strict=True):
            if what == "columns":
                columns[name] = "".join(line for line in body.splitlines() if not line.startswith("--"))
                continue
            for dialect in (only,) if only else ("sqlite", "postgres"):
                if (name, dialect) in queries:
                    raise ValueError(f"query {name!r} stands twice for {dialect} ({file.name})")
                queries[name, dialect] = body.strip().rstrip(";")
    shared = Dialect("both", {name: Dialect("both", columns).text(text) for name, text in columns.items()})
    return {key: shared.text(text) for key, text in queries.items()}


_TEXTS = _load()
q = Queries(frozenset(name for name, _ in _TEXTS))


@cache
def compile_for(dialect: Dialect) -> Mapping[str, Compiled]:
    """Every query in a dialect; PostgreSQL takes its arguments by number."""
    return {name: _compile(dialect, text) for (name, only), text in _TEXTS.items() if only == dialect.name}


def _compile(dialect: Dialect, text: str) -> Compiled:
    order: list[str] = []

    def number(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None:
            return "" if found[0].startswith("--") else found[0]
        if name not in order:
            order.append(name)
        return f"${order.index(name) + 1}" if dialect is POSTGRES else f":{name}"

    sql = _ARGUMENT.sub(number, dialect.text(text))
    lines = "\n".join(line for line in sql.splitlines() if line.strip())
    return Compiled(lines, tuple(order), counted="{counted}" in text)


@cache
def newest_version() -> int:
    """The newest version of a database that this program knows."""
    return max(number for number, _ in migrations(SQLITE))


def migrations(dialect: Dialect) -> list[tuple[int, str]]:
    """The numbered steps from an empty database to today's, each as SQL in a dialect.

    What only one of them needs stands between `-- only: sqlite` and `-- end`.
    """
    return [*_steps(dialect)]


@cache
def _steps(dialect: Dialect) -> tuple[tuple[int, str], ...]:
    def keep(found: re.Match[str]) -> str:
        return found["body"] if found["only"] == dialect.name else ""

    folder = files("segue.database").joinpath("migrations")
    steps = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return tuple((int(f.name[:4]), dialect.text(_ONLY.sub(keep, f.read_text("utf-8")))) for f in steps)
