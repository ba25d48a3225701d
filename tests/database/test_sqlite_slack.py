"""Slack of SQLite's pages: SQLite leaves words there that it moved to another page, and nothing may be left of them."""

import asyncio
import random
from pathlib import Path

import apsw

from segue.database.sqlite import Sqlite
from tests.changes.small import everything, open_sqlite, put

WORD = "canary"


def moved_and_deleted(path: Path) -> None:
    """Put words in among others until pages are full and cells move, then delete them."""
    dice, connection = random.Random(7), apsw.Connection(str(path))
    connection.execute("pragma secure_delete = on").fetchall()
    connection.execute("create table notes (id text primary key, said text) without rowid")
    with connection:
        for n in range(400):
            said = f"{WORD} {n} " + "x" * dice.randrange(400)
            connection.execute("insert into notes values (?, ?)", (f"{dice.getrandbits(64):x}", said))
    connection.execute("update notes set said = id")
    connection.execute("pragma wal_checkpoint(passive)").fetchall()
    connection.close()


def left(path: Path) -> bytes:
    return path.read_bytes() + Path(f"{path}-wal").read_bytes()


def integrity(path: Path) -> str:
    connection = apsw.Connection(str(path))
    try:
        return str(connection.execute("pragma integrity_check").fetchall()[0][0])
    finally:
        connection.close()


async def test_nothing_is_left_of_words_that_were_moved_before_they_were_deleted(tmp_path: Path) -> None:
    path = tmp_path / "segue.db"
    driver = await open_sqlite(path)
    moved_and_deleted(path)
    assert WORD.encode() in path.read_bytes(), "SQLite itself leaves them"
    assert await driver.scrub()
    assert WORD.encode() not in left(path)
    await driver.close()
    assert integrity(path) == "ok"


async def test_others_write_on_while_it_is_overwritten_and_nothing_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "segue.db"
    driver, other = await open_sqlite(path), await open_sqlite(path)
    moved_and_deleted(path)

    async def writes(through: Sqlite, numbers: range) -> None:
        for n in numbers:
            await through.write(put, n, f"word {n} " * 50)

    writing = asyncio.gather(writes(driver, range(1, 100)), writes(other, range(100, 200)))
    await driver.scrub()
    await writing
    while not await driver.scrub():
        """Somebody was in the way."""
    assert WORD.encode() not in left(path)
    assert list(await driver.read(everything)) == list(range(200))
    await driver.close()
    await other.close()
    assert integrity(path) == "ok"
