"""Output of commands: JSON for a script, lines for a person."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import Any, ParamSpec

import click
import msgspec

from segue.changes.exchange.explanations import moment, printable

__all__ = [
    "awaited",
    "json_option",
    "moment",
    "print_json",
    "print_list",
    "print_one",
    "print_rows",
    "printable",
    "short",
]

P = ParamSpec("P")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
_SHORT = 60


def awaited(command: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A command that awaits, as click runs it."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(command(*args, **kwargs))

    return run


def print_one(value: object, text: str, *, as_json: bool) -> None:
    """Print a value as JSON for a script, or as a text about it for a person."""
    if as_json:
        print_json(value)
    else:
        click.echo(text)


def print_list(values: Sequence[object], rows: Sequence[Sequence[str]], none: str, *, as_json: bool) -> None:
    """Print values as JSON for a script, or as rows for a person; a sentence where there are none."""
    if as_json:
        print_json(values)
    elif rows:
        print_rows(rows)
    else:
        click.echo(none)


def print_json(value: object) -> None:
    """Print a value as JSON."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_rows(rows: Sequence[Sequence[str]]) -> None:
    """Print rows with their columns below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def short(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(printable(text).split())
    return line if len(line) <= _SHORT else line[: _SHORT - 1] + "…"
