"""`segue logs`: the gateway's log, one readable line an event."""

import json
import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import click

from segue.cli.host import LOG
from segue.cli.output import printable
from segue.config import data_folder
from segue.errors import SegueError

_PAUSE = 0.3


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written from now on, until Ctrl-C.")
@click.option("-n", "count", type=click.IntRange(0), default=50, show_default=True, help="Lines to begin with.")
def command(count: int, *, follow: bool) -> None:
    """Show the newest lines of the log in the data folder."""
    path = data_folder(os.environ) / LOG
    try:
        log = path.open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SegueError(f"{path}: there is no log ({error.strerror}). `segue` and `segue serve` write one.") from error
    with log:
        for line in deque(log, maxlen=count):
            click.echo(_readable(line))
        if follow:
            for line in _added(log, path):
                click.echo(_readable(line))


def _added(log: TextIO, path: Path) -> Iterator[str]:
    """Lines that are added, also to the file that takes the place of this one."""
    while True:
        while line := log.readline():
            yield line
        time.sleep(_PAUSE)
        if path.exists() and path.stat().st_ino != os.fstat(log.fileno()).st_ino:
            log.close()
            log = path.open(encoding="utf-8", errors="replace")


def _readable(line: str) -> str:
    """A line of the log as a person reads it; one that isn't JSON as it is."""
    try:
        fields = json.loads(line)
        said = f"{fields.pop('at')} {fields.pop('level')} {fields.pop('event')}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return printable(line.rstrip("\n"))
    return printable(" ".join([said, *(f"{name}={value}" for name, value in fields.items())]))
