"""Output of commands: JSON for a script, lines for a person."""

from collections.abc import Sequence

import click
import msgspec

from segue.changes.exchange.explanations import moment, printable

__all__ = ["json_option", "moment", "print_json", "print_rows", "printable", "short"]

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
_SHORT = 60


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
