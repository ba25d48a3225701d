"""`segue backup FILE`: backs up the database and its files as of one moment, while a gateway runs."""

import tarfile
import tempfile
from pathlib import Path

import click

from segue.cli.host import config_here
from segue.database.sqlite_file import SqliteFile
from segue.errors import Invalid, StoreUnreachable

DATABASE = "segue.db"
BESIDE = ("files", "scheduled")
"""Subfolders of the data folder with files of messages."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
def command(file: Path) -> None:
    """Write a backup: all conversations with their files."""
    config = config_here()
    if not isinstance(config.store, Path):
        raise Invalid("store", "it is on a PostgreSQL server", "Use pg_dump; docs/deploy.md says how.")
    if not config.store.exists():
        raise Invalid("store", f"there is no {config.store} yet", "Talk to the agent first.")
    if file.exists():
        raise Invalid("file", f"{file} is there already", "Name another: a backup is never overwritten.")
    try:
        with tempfile.TemporaryDirectory(dir=file.absolute().parent, prefix=".segue-backup-") as scratch:
            half = Path(scratch) / "half"
            SqliteFile(config.store, None, 5.0, None).copy_to(Path(scratch) / DATABASE)
            # Files come after the database: each file is stored before its message, so all named files exist.
            with tarfile.open(half, "x") as archive:
                archive.add(Path(scratch) / DATABASE, DATABASE)
                for name in BESIDE:
                    if (config.data / name).is_dir():
                        archive.add(config.data / name, name)
            half.chmod(0o600)
            half.rename(file)
    except OSError as error:
        raise StoreUnreachable(f"{file} can't be written ({error.strerror}). Name another place.") from error
    click.echo(f"{file} holds everything that was said until now. `segue restore {file}` brings it back.")
