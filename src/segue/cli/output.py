"""Output of commands: JSON for a script, lines for a person."""

import asyncio
import codecs
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from datetime import UTC, datetime
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, get_args

import click
import msgspec

from segue.changes.exchange.explanations import moment, printable
from segue.core.text.visible import with_codes
from segue.core.values import Moment
from segue.errors import SegueError

__all__ = [
    "awaited",
    "debug_option",
    "json_option",
    "moment",
    "print_json",
    "print_list",
    "print_one",
    "print_rows",
    "printable",
    "short",
    "write_pieces",
]

P = ParamSpec("P")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
debug_option = click.option("--debug", is_flag=True, help="Show the tracebacks of errors, your own agent's too.")
_SHORT = 60


def awaited(command: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Wrap an async command for click."""

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
    """Print values as JSON for a script, or as rows for a person; print `none` if there are none."""
    if as_json:
        print_json(values)
    elif rows:
        print_rows(rows)
    else:
        click.echo(none)


def print_json(value: object) -> None:
    """Print a value as JSON. Times are ISO 8601 in UTC."""
    written = _with_dates(value, msgspec.to_builtins(value))
    click.echo(msgspec.json.format(msgspec.json.encode(written), indent=2).decode())


def _with_dates(value: object, written: Any) -> Any:
    """Return the JSON form of a value, with a date for every field that is a `Moment`."""
    if isinstance(value, msgspec.Struct):
        for field, (name, dated) in _fields(type(value)).items():
            if name in written:
                inner = getattr(value, field)
                written[name] = _date(inner) if dated and inner is not None else _with_dates(inner, written[name])
    elif isinstance(value, dict):
        written = dict(zip(written, map(_with_dates, value.values(), written.values()), strict=True))
    elif isinstance(value, list | tuple):
        written = [_with_dates(inner, form) for inner, form in zip(value, written, strict=True)]
    return written


@cache
def _fields(kind: type[msgspec.Struct]) -> dict[str, tuple[str, bool]]:
    """Return the JSON name of each field, and whether it is a time."""
    return {f.name: (f.encode_name, Moment in (f.type, *get_args(f.type))) for f in msgspec.structs.fields(kind)}


def _date(at: Moment) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def print_rows(rows: Sequence[Sequence[str]]) -> None:
    """Print rows with their columns below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def short(text: str) -> str:
    """Return the beginning of a text, on one line."""
    line = " ".join(printable(text).split())
    return line if len(line) <= _SHORT else line[: _SHORT - 1] + "…"


async def _for_terminal(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Escape control characters for a terminal."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    async for piece in pieces:
        yield "\t".join(map(with_codes, decoder.decode(piece).split("\t")))


async def write_pieces(pieces: AsyncIterator[bytes], file: Path | None) -> None:
    """Write large content in pieces: to a file, or to standard output without one."""
    if file is None:
        shown = _for_terminal(pieces) if sys.stdout.isatty() else pieces
        async for piece in shown:
            click.echo(piece, nl=False)
        return
    try:
        with file.open("wb") as opened:
            async for piece in pieces:
                opened.write(piece)
    except OSError as error:
        raise SegueError(f"{file} can't be written ({error.strerror}). Name another file.") from error
