"""Power cuts on the SQLite file: what was acknowledged is there, whatever part of the unsynced writes the disk kept.

A gateway runs on a disk that records everything. Then images of the disk are made for random moments, each opened like
the file of a machine that comes up again and compared with what people and the platform had been told by that moment.
"""

import asyncio
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import apsw

from segue.core.lanes import Identity
from segue.core.values import Value
from segue.database import sqlite_file, sqlite_log
from segue.database.sqlite import Sqlite
from segue.database.sqlite_file import APPLICATION, keep_log
from segue.database.statements import SQLITE, migrations
from segue.errors import StoreError
from segue.store import Store
from tests.changes.invariants import VIOLATIONS
from tests.drills.gateways import Repeats
from tests.drills.planting import Bug, Patch, planted
from tests.drills.platter import Happened, Platter, Recorder, Told
from tests.drills.room import DELIVERY, MESSAGE, Wall, settings, talk
from tests.in_process import gateway_on

LIVES = 3
CHECKPOINT = 60
"""Pages after which the log is folded into the file: few, so that there are many moments to be cut in."""
_TODAY = max(number for number, _ in migrations(SQLITE))
"""The version at which anything can have been said: before it, the file is still being made."""
_FOLDS = (Patch(sqlite_log, "PAGES", lambda _: CHECKPOINT), Patch(sqlite_log, "MOST", lambda _: 2 * CHECKPOINT))
_INCONSISTENT = VIOLATIONS | {
    "a message became two turns": "select message from turns group by message having count(*) > 1",
    "a turn was answered and no answer is on its way": """
        select session, seq from turns t where outcome = 'answered' and within is null and not exists (
          select 1 from deliveries d where d.session = t.session and d.turn = t.seq)""",
}
_OPENED = 40
"""One image in so many is also opened by Segue and written to."""


class Found(Value, frozen=True):
    """What came of some power cuts."""

    images: int
    told: int
    """What people and the platform had been told, when the last life ended."""
    wrong: list[str]


def run(images: int, seed: int, people: int = 4, messages: int = 12, bug: Bug = Bug.NONE) -> Found:
    """Let a gateway live a few lives on a disk that records; then cut the power at so many random moments of them."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="segue-power-", dir=_fast()) as scratch:
        disk = Recorder()
        try:
            with planted(*_FOLDS, _sees_folders(disk), *bug.patches):
                for life in range(LIVES):
                    asyncio.run(_live(Path(scratch) / "segue.db", disk, life, people, messages, dice))
        finally:
            disk.unregister()
        wrong = _cut(disk.record, Path(scratch) / "image", images, dice)
    return Found(images, sum(isinstance(each, Told) for each in disk.record), wrong)


def _sees_folders(disk: Recorder) -> Patch:
    """Segue syncs the folder itself, past SQLite's disk: tell the record of it."""

    def made_of(sync: Callable[[Path], None]) -> Callable[[Path], None]:
        def recorded(folder: Path) -> None:
            sync(folder)
            disk.sync_folder()

        return recorded

    return Patch(sqlite_file, "_sync_folder", made_of)


def _fast() -> str | None:
    """A folder in memory, where there is one: what it would be like on a disk is all in the record."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


async def _live(path: Path, disk: Recorder, life: int, people: int, messages: int, dice: random.Random) -> None:
    """One life of a gateway, from its start to its end, while people talk to it."""
    # In every other life somebody who only looks opened the file first, and so made its log.
    before = apsw.Connection(str(path), vfs=disk.name) if life % 2 else None
    if before:
        before.execute("select count(*) from sqlite_schema").fetchall()
    driver = await Sqlite.open(path, vfs=disk.name)
    async with gateway_on(driver, Repeats(0.0, ""), Wall(disk.tell), settings=settings()) as gateway:
        await asyncio.gather(
            *(
                talk(gateway.accept, f"chat-{life}-{n}", messages, disk.tell, random.Random(dice.random()))
                for n in range(people)
            )
        )
    if before:
        before.close()


def _cut(record: list[Happened], folder: Path, images: int, dice: random.Random) -> list[str]:
    """Cut the power at random moments of what happened, and look at what is left."""
    folder.mkdir()
    moments = sorted(dice.randrange(1, len(record) + 1) for _ in range(images))
    platter, told, wrong, index = Platter(), set[tuple[str, str]](), list[str](), 0
    for n, moment in enumerate(moments):
        while index < moment:
            happened = record[index]
            platter.take(index, happened)
            if isinstance(happened, Told):
                told.add((happened.what, happened.of))
            index += 1
        shutil.rmtree(folder)
        folder.mkdir()
        for name, content in platter.cut(dice).items():
            (folder / name).write_bytes(content)
        wrong += [f"cut at {moment} of {len(record)}: {each}" for each in _look(folder / "segue.db", told)]
        if n % _OPENED == 0 and not wrong:
            wrong += asyncio.run(_go_on(folder / "segue.db"))
    return wrong


def _look(path: Path, told: set[tuple[str, str]]) -> list[str]:
    """What isn't as it should be in a file."""
    connection = apsw.Connection(str(path))
    try:
        keep_log(connection)
        connection.execute("pragma synchronous = off")
        damage = [what for (what,) in connection.execute("pragma quick_check") if what != "ok"]
        if damage:
            return [f"damaged: {damage}"]
        [(ours,)] = connection.execute("pragma application_id")
        [(version,)] = connection.execute("pragma user_version")
        if ours != APPLICATION or version < _TODAY:
            return [f"lost: everything, {len(told)} facts"] if told else []
        wrong = [
            f"{what}: {rows}" for what, sql in _INCONSISTENT.items() if (rows := connection.execute(sql).fetchall())
        ]
        messages = {message for (message,) in connection.execute("select message from turns")}
        keys = {key for (key,) in connection.execute("select key from deliveries")}
    except apsw.Error as error:
        return [f"can't be read: {error}"]
    finally:
        connection.close()
    there = {MESSAGE: messages, DELIVERY: keys}
    return wrong + [f"lost: {what}: {of}" for what, of in sorted(told) if of not in there[what]]


async def _go_on(path: Path) -> list[str]:
    """Go on with the file as Segue does; returns what is wrong with that."""
    try:
        async with Store(await Sqlite.open(path)) as store:
            await store.person(Identity("wall", "alpha", "somebody else"))
    except StoreError as error:
        return [f"can't go on: {error}"]
    return []
