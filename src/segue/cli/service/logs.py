"""`segue logs`: the gateway's log, one readable line an event. Also prints tracebacks for `--debug`."""

import json
import linecache
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click

from segue.cli.host import LOG, make_log
from segue.cli.output import printable
from segue.config import data_folder
from segue.errors import SegueError

_PAUSE = 0.3
_HERE = str(Path(__file__).parent.parent.parent)
_FRAME = re.compile(r"(?P<file>.+):(?P<line>\d+) in (?P<name>\S+)")


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
            for line in _added(log, path, threading.Event()):
                click.echo(_readable(line))


@contextmanager
def tracebacks(folder: Path) -> Iterator[None]:
    """Print the tracebacks in a gateway's log until the block ends."""
    path, over = make_log(folder), threading.Event()
    log = path.open(encoding="utf-8", errors="replace")
    log.seek(0, os.SEEK_END)

    def show() -> None:
        for line in _added(log, path, over):
            if told := _traceback(line):
                # Look up stderr each time: an open prompt replaces it, to redraw itself below the output.
                sys.stderr.write(told)
                sys.stderr.flush()

    shows = threading.Thread(target=show, name="tracebacks", daemon=True)
    shows.start()
    try:
        yield
    finally:
        over.set()
        shows.join()


def _traceback(line: str) -> str:
    """Format the error in a log line like Python's; return an empty text if there is none."""
    try:
        fields = json.loads(line)
        places, event = fields["stack"], fields["event"]
        error = fields.get("error") or fields["failure"]
    except (ValueError, KeyError, TypeError):
        return ""
    told = [f"{event}, at:"]
    # Segue's own frames above the user's code don't help the user.
    own = next((n for n, place in enumerate(places) if not place.startswith(_HERE)), 0)
    for place in places[own:]:
        if found := _FRAME.fullmatch(place):
            told.append(f'  File "{found["file"]}", line {found["line"]}, in {found["name"]}')
            told += [f"    {code}"] if (code := linecache.getline(found["file"], int(found["line"])).strip()) else []
        else:
            told.append(place)
    return "".join(f"{printable(words)}\n" for words in (*told, str(error)))


def _added(log: TextIO, path: Path, over: threading.Event) -> Iterator[str]:
    """Yield new lines until the event is set, and follow the file when it is rotated."""
    last = False
    while not last:
        last = over.is_set()
        while line := log.readline():
            yield line
        over.wait(_PAUSE)
        if path.exists() and path.stat().st_ino != os.fstat(log.fileno()).st_ino:
            log.close()
            log = path.open(encoding="utf-8", errors="replace")


def _readable(line: str) -> str:
    """Format a log line for people. A line that isn't JSON stays unchanged."""
    try:
        fields = json.loads(line)
        said = f"{fields.pop('at')} {fields.pop('level')} {fields.pop('event')}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return printable(line.rstrip("\n"))
    return printable(" ".join([said, *(f"{name}={value}" for name, value in fields.items())]))
