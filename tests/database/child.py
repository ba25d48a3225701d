"""A process of its own for tests: `python -m tests.database.child COMMAND DATABASE ...`.

What it has to say it says in lines on its standard output.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from segue.core.contracts.database import Driver
from segue.core.contracts.probes import Point, Probe
from segue.database.sqlite import RunsIn
from segue.database.transactions import unheeded
from segue.errors import StoreError
from tests.changes.small import open_postgres, open_sqlite, put

NOBODY = 65534


async def open_either(database: str, probe: Probe = unheeded) -> Driver:
    if database.startswith("postgresql://"):
        return await open_postgres(database, probe=probe)
    return await open_sqlite(Path(database), probe=probe)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def die(database: str, label: str, which: str) -> None:
    """Open it, write number 1, and die where the label comes for the nth time."""
    left = int(which)

    def probe(point: Point) -> None:
        nonlocal left
        left -= point == label
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    db = await open_either(database, probe)
    await db.write(put, 1)
    await db.close()


async def race(database: str, number: str) -> None:
    """Wait for a line, open it, write that number."""
    say("ready")
    sys.stdin.readline()
    db = await open_either(database)
    await db.write(put, int(number))
    await db.close()
    say("done")


async def echo(database: str) -> None:
    """Answer each hint `ask` with the hint `answer`, until killed."""
    db = await open_either(database)
    asked = asyncio.Event()
    db.listen(lambda topic: asked.set() if topic == "ask" else None)
    say("ready")
    while True:
        await asked.wait()
        asked.clear()
        await db.hint("answer")


async def plainly(database: str) -> None:
    """Open it as somebody without the rights of root, write number 1 and say what came of it."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        # Inline: whatever is imported only now may lie where nobody can read it.
        db = await open_sqlite(Path(database), running=RunsIn.INLINE)
        say("opened")
        await db.write(put, 1)
        await db.close()
    except StoreError as error:
        say(f"{type(error).__name__}: {error}")
    else:
        say("done")


if __name__ == "__main__":
    command: Callable[..., Coroutine[Any, Any, None]] = globals()[sys.argv[1]]
    asyncio.run(command(*sys.argv[2:]))
