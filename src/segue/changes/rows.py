"""Rows as values: the one place that knows columns by their position.

Law: the columns of a query are the fields of the value that its rows become, by name and in order. A field that is a
value itself takes one column for each of its own fields, and is None if the first of them is; one that is written as a
key, as JSON or as the word of an enum takes one column. A test holds every query against its type, on both databases.
"""

from collections.abc import Callable
from enum import EnumType
from functools import cache, lru_cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

import msgspec

from segue.core.contracts.database import Statement, Together, Transaction
from segue.core.lanes import Address, Identity, Lane
from segue.core.messages import File, Parts, decode_parts
from segue.core.transcripts import Author, Source

_files = msgspec.json.Decoder(tuple[File, ...])
T = TypeVar("T")

_WRITTEN: dict[Any, Callable[[Any], Any]] = {
    bool: bool,
    Address: Address.parse,
    Identity: Identity.parse,
    Lane: Lane.parse,
    Parts: decode_parts,
    tuple[str, ...]: msgspec.json.Decoder(tuple[str, ...]).decode,
    File: lambda text: _files.decode(text)[0],
}
"""Readers of columns that don't hold their value as it is."""
_SHARED = frozenset({Author, Source})
"""Values that stand in many rows: equal ones are one object."""


def each(kind: Callable[..., T], statement: Statement) -> Transaction[list[T]]:
    """Every row of a query."""
    rows = yield statement
    read = _reader(kind)
    return [read(*row) for row in rows]


def first(kind: Callable[..., T], statement: Statement) -> Transaction[T | None]:
    """The first row of a query; None if it has none."""
    rows = yield statement
    return _reader(kind)(*rows[0]) if rows else None


def one(kind: Callable[..., T], statement: Statement) -> Transaction[T]:
    """The only row of a query that always has one."""
    [row] = yield statement
    result: T = _reader(kind)(*row)
    return result


def must(statement: Statement) -> Statement:
    """A statement that finds or changes a row, or the transaction runs again; its rows aren't read."""
    return Statement(statement.name, statement.arguments, must=True)


class RowsOf(NamedTuple):
    """A statement of a batch whose rows are read."""

    kind: Callable[..., Any]
    statement: Statement


def batch(*parts: Statement | RowsOf, last: bool = False) -> Transaction[list[Any]]:
    """Several statements that are sent together: the values of those that are wanted, and how many rows others have."""
    statements = tuple(part.statement if isinstance(part, RowsOf) else part for part in parts)
    found = yield Together(statements, last)
    readers = [_reader(part.kind) if isinstance(part, RowsOf) else None for part in parts]
    return [[read(*row) for row in rows] if read else len(rows) for read, rows in zip(readers, found, strict=True)]


def columns_of(kind: Any, name: str = "") -> list[str]:
    """The columns that a type takes: those of a field that is a value itself begin with the field's name."""
    kind, _ = _required(kind)
    if not _spreads(kind):
        return [name]
    before = f"{name}_" if name else ""
    return [column for field, hint in get_type_hints(kind).items() for column in columns_of(hint, f"{before}{field}")]


@cache
def _reader(kind: Any) -> Callable[..., Any]:
    """A function of a row's columns that makes the value."""
    columns = columns_of(kind, "it")
    used: dict[str, Any] = {}
    made = _expression(kind, "it", used)
    # Compiled, as dataclasses are: transcripts are read by the thousand.
    read: Callable[..., Any] = eval(f"lambda {', '.join(columns)}: {made}", used)  # noqa: S307
    return lru_cache(maxsize=1024)(read) if kind in _SHARED else read


def _expression(kind: Any, name: str, used: dict[str, Any]) -> str:
    """Python that makes a value of its columns, and the functions that it uses."""
    kind, optional = _required(kind)
    columns = columns_of(kind, name)
    function = f"make_{name}"
    if kind in _SHARED and name != "it":
        used[function] = _reader(kind)
        made = f"{function}({', '.join(columns)})"
    elif _spreads(kind):
        used[function] = kind
        fields = (_expression(hint, f"{name}_{field}", used) for field, hint in get_type_hints(kind).items())
        made = f"{function}({', '.join(fields)})"
    elif isinstance(kind, EnumType):
        used[function] = dict(kind._value2member_map_)
        made = f"{function}[{name}]"
    elif kind in _WRITTEN:
        used[function] = _WRITTEN[kind]
        made = f"{function}({name})"
    else:
        return name
    return f"(None if {columns[0]} is None else {made})" if optional else made


def _spreads(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in _WRITTEN


def _required(kind: Any) -> tuple[Any, bool]:
    """A type without None, and whether it may be None."""
    if not isinstance(kind, UnionType) or NoneType not in get_args(kind):
        return kind, False
    [kind] = [part for part in get_args(kind) if part is not NoneType]
    return kind, True
