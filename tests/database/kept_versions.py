"""Databases of every version, each a small file with the queries of its program.

`python -m tests.database.kept_versions` keeps today's, once for each version that people get.
"""

import asyncio
import gzip
import json
import tempfile
from pathlib import Path

from segue.database.statements import POSTGRES, SQLITE, compile_for, migrations
from segue.testing import WhatsApp
from tests.stories.square import Square

FOLDER = Path(__file__).parent / "versions"
SAID = ["about cats", "You said: about cats", "and kittens", "You said: and kittens"]
"""The transcript of the session “Cats” in each of them."""


def kept() -> list[Path]:
    """The files, the oldest version first."""
    return sorted(FOLDER.glob("*.db.gz"))


def unpacked(file: Path, to: Path) -> Path:
    """One of them as a database that can be opened."""
    to.write_bytes(gzip.decompress(file.read_bytes()))
    return to


async def make(path: Path) -> None:
    """A database with a bit of everything: a branch, an exchange taken back, scheduled work, an index."""
    square = Square(WhatsApp(), str(path))
    async with square.open():
        await square.says("about cats")
        await square.says("/title Cats")
        await square.says("and kittens")
        await square.says("and dogs")
        await square.says("/undo")
        await square.says("/branch Lions")
        await square.says("about lions")
        await square.says("/schedule in 3 days feed the cats")
        await square.store.index()


def keep() -> Path:
    """Keep today's version."""
    newest = max(number for number, _ in migrations(SQLITE))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "segue.db"
        asyncio.run(make(path))
        file = FOLDER / f"{newest:04}.db.gz"
        file.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    asked = {d.name: {name: query.sql for name, query in sorted(compile_for(d).items())} for d in (SQLITE, POSTGRES)}
    (FOLDER / f"{newest:04}.queries.json.gz").write_bytes(gzip.compress(json.dumps(asked).encode(), mtime=0))
    return file


if __name__ == "__main__":
    print(keep())  # noqa: T201
