"""SQLite files with today's schema: to make one by all migrations takes ten times as long as to write a copy."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from segue.database.sqlite_file import SqliteFile
from segue.database.statements import SQLITE, migrations
from segue.database.transactions import unheeded


def file_of_today(path: Path) -> str:
    """The address of a file, which is made if it isn't there."""
    if not path.exists():
        path.touch(0o600)
        path.write_bytes(_empty())
    return str(path)


@cache
def _empty() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "segue.db"
        SqliteFile(path, None, 5.0, None).writer(migrations(SQLITE), unheeded).close()
        return path.read_bytes()
