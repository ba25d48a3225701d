"""`segue backup FILE`: the database and the files beside it, as of one moment, while a gateway runs."""

import tarfile
import tempfile
from pathlib import Path

import click

from segue.cli.host import config_here
from segue.database.sqlite_file import SqliteFile
from segue.errors import Invalid, StoreUnreachable

DATABASE = "segue.db"
BESIDE = ("files", "scheduled")
"""Folders of the data folder that belong to what was said."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
def command(file: Path) -> None:
    """Write a backup: everything that was said, with the files that came with it."""
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
            # Files after the database: what it names is there, since a file is kept before its message is.
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
