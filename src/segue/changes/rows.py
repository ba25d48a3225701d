"""Rows of a query as values: all of them, the first, or the only one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from segue.core.contracts.database import Statement, Transaction
from segue.core.contracts.rows import row_reader

T = TypeVar("T")


def each(kind: Callable[..., T], statement: Statement) -> Transaction[list[T]]:
    """Every row of a query."""
    rows = yield statement
    read = row_reader(kind)
    return [read(*row) for row in rows]


def first(kind: Callable[..., T], statement: Statement) -> Transaction[T | None]:
    """The first row of a query; None if it has none."""
    rows = yield statement
    return row_reader(kind)(*rows[0]) if rows else None


def one(kind: Callable[..., T], statement: Statement) -> Transaction[T]:
    """The only row of a query that always has one."""
    [row] = yield statement
    result: T = row_reader(kind)(*row)
    return result
