"""`segue restore [FILE]`: replaces the database by a backup, and moves the old one aside."""

import secrets
import shutil
import tarfile
import time
from pathlib import Path

import click

from segue.changes import eras
from segue.changes.people import browsers, codes, register
from segue.changes.people.register import RightsCount
from segue.changes.tally import tally
from segue.cli.host import config_here, open_configured
from segue.cli.output import awaited
from segue.cli.service.backup import BESIDE, DATABASE
from segue.config import Config
from segue.database.checks import check
from segue.database.sqlite_file import SqliteFile
from segue.errors import Invalid, StoreError, StoreUnreachable
from segue.store import fresh_ids

_SQLITE = b"SQLite format 3\0"


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=False)
@awaited
async def command(file: Path | None) -> None:
    """Restore a backup. Without FILE, declare that you restored the database by other means.

    Browsers sign in again. Tokens, grants and blocks are as they were in the backup.

    This begins a new era: Segue shows new answers even where platforms have answers that the backup lacks.
    """
    config = config_here()
    await _refuse_running(config)
    if file is not None:
        if not isinstance(config.store, Path):
            raise Invalid(
                "store", "it is on a PostgreSQL server", "Use pg_restore, then `segue restore` without a file."
            )
        try:
            aside = _bring(file, config.store, config.data)
        except (OSError, tarfile.TarError) as error:
            raise StoreUnreachable(f"{file} can't be brought back: {error}. What was there is as it was.") from error
        if aside is not None:
            click.echo(f"What was there is in {aside} now.")
    if isinstance(config.store, Path) and _take_alone(config.store) and not (file and tarfile.is_tarfile(file)):
        click.echo("It was copied while a gateway ran, without its log: what was said last isn't in it.", err=True)
    async with await open_configured(config) as store:
        await store.driver.write(eras.begin, fresh_ids(time.time)())
        for name in (browsers.KEY, codes.KEY):
            # Whoever has the backup has its keys.
            await store.driver.write(browsers.rotate, name, secrets.token_hex(32), time.time())
        rights = await store.driver.read(register.count_rights, time.time())
    click.echo(_told(rights))
    click.echo("Restored. `segue serve` goes on from there.")


def _told(rights: RightsCount) -> str:
    """Describe the rights that a restore brings back and those that it resets."""
    counts = ((rights.tokens, "token"), (rights.grants, "grant"), (rights.blocks, "block"))
    tokens, grants, blocks = (f"{count} {what}{'' if count == 1 else 's'}" for count, what in counts)
    return (
        "The keys are new: every browser signs in again, and codes have to be asked for anew.\n"
        f"{tokens}, {grants} and {blocks} are as they were in the backup. Repeat what you revoked or blocked since: "
        "`segue tokens list` and `segue people list --all` show them."
    )


def _take_alone(store: Path) -> bool:
    """Accept a file that was copied without its write-ahead log, by giving it an empty one."""
    alone = SqliteFile(store, None, 5.0, None).copied_alone() is not None
    if alone:
        Path(f"{store}-wal").touch(mode=0o600)
    return alone


async def _refuse_running(config: Config) -> None:
    where = config.store if isinstance(config.store, Path) else config.store.reveal()
    if isinstance(where, Path) and not where.exists():
        return
    try:
        found = (await check(where, tally)).tally
    except StoreError:
        return  # The restore replaces an unreadable database.
    if found is not None and found.replicas.alive:
        raise Invalid("store", "a gateway runs on it", "Stop it first.")


def _bring(file: Path, to: Path, data: Path) -> Path | None:
    """Put a backup or a copy of a database in place. Return the path of the old one."""
    to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = to.with_name(f"{to.name}.new")
    with file.open("rb") as opened:
        plain = opened.read(len(_SQLITE)) == _SQLITE
    if plain:
        shutil.copyfile(file, new)
        log = Path(f"{file}-wal")
        if log.exists():
            shutil.copyfile(log, f"{new}-wal")
    else:
        with tarfile.open(file) as archive:
            member = archive.extractfile(DATABASE)
            if member is None:
                raise tarfile.TarError("it is no backup of Segue's")
            with new.open("wb") as out:
                shutil.copyfileobj(member, out)
            kept = [m for m in archive.getmembers() if m.name.split("/")[0] in BESIDE]
            archive.extractall(data, kept, filter="data")
    new.chmod(0o600)
    aside = _keep_aside(to) if to.exists() else None
    # If the process dies between these steps, the old database or a copy without its log is in place. The latter is
    # refused.
    for part in ("-wal", "-shm"):
        Path(f"{to}{part}").unlink(missing_ok=True)
    new.replace(to)
    if Path(f"{new}-wal").exists():
        Path(f"{new}-wal").replace(f"{to}-wal")
    return aside


def _keep_aside(store: Path) -> Path:
    """Give a database and its log a second name."""
    aside = store.with_name(f"{store.name}.before-{time.strftime('%Y%m%dT%H%M%S')}")
    for part in ("-wal", ""):
        if Path(f"{store}{part}").exists():
            try:
                Path(f"{aside}{part}").hardlink_to(f"{store}{part}")
            except OSError:
                shutil.copyfile(f"{store}{part}", f"{aside}{part}")  # file systems without hard links
    return aside
