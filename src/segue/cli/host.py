"""Opens the host's config and store for commands."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from segue.config import Config, Fetch, Untrusted, default, find, load
from segue.core.contracts.files import FileStore
from segue.core.lanes import Person
from segue.core.transcripts import Session
from segue.core.values import SessionId
from segue.core.windows import HOSTS
from segue.errors import Invalid, Refused, StoreUnreachable
from segue.runtime.files.database import DatabaseFiles
from segue.runtime.files.folder import Folder
from segue.store import Store, open_store


def config_here(fetch: Fetch = Fetch.ALL) -> Config:
    """Load the segue.toml that applies, or the defaults without one."""
    try:
        file = find(os.environ, Path.cwd())
    except Untrusted:
        raise
    except Invalid:
        return default(os.environ)
    return load(file, os.environ, fetch)


LOG = "log"


def make_log(folder: Path) -> Path:
    """Return the log in a data folder; create it if needed."""
    _make(folder)
    return private_file(folder / LOG)


def private_file(path: Path) -> Path:
    """Return a file that only its user can read; create it if needed."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        path.chmod(0o600)
    except OSError as error:
        raise StoreUnreachable(f"{path} can't be written ({error.strerror}). See to it, or set SEGUE_HOME.") from error
    return path


async def open_configured(config: Config) -> Store:
    """Open the store of a config; create its folders if needed."""
    _make(config.data)
    if not isinstance(config.store, Path):
        return await open_store(config.store.reveal())
    _make(config.store.parent)
    return await open_store(config.store)


def file_store(config: Config, store: Store) -> FileStore:
    """Return the store for files.

    Files are in the data folder, or in the database if several machines may share it.
    """
    return Folder(config.data) if isinstance(config.store, Path) else DatabaseFiles(store.driver)


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[Store, Person]]:
    """Open the store of the config, with its host. Of all secrets, only the database's is fetched."""
    async with await open_configured(config_here(Fetch.STORE)) as store:
        yield store, await store.person(HOSTS[0])


@asynccontextmanager
async def looked_at() -> AsyncIterator[tuple[Store, Person]]:
    """Open the store for a command that only reads.

    If there is no database yet, it opens an empty temporary one and creates nothing.
    """
    config = config_here(Fetch.STORE)
    if not isinstance(config.store, Path) or config.store.exists():
        async with opened() as found:
            yield found
        return
    with TemporaryDirectory() as folder:
        async with await open_store(Path(folder) / config.store.name) as store:
            yield store, await store.person(HOSTS[0])


async def named(store: Store, by: Person, name: str) -> Session:
    """Find one of a person's own sessions by its id or title."""
    try:
        return await store.session(SessionId(name), by)
    except Refused:
        """It may be a title."""
    try:
        return await store.session(await store.find(name, by), by)
    except Refused as refused:
        near = await store.nearest_title(name, by)
        fix = f'Did you mean "{near}"?' if near else "`segue sessions list` lists them."
        raise Invalid("session", f'none of yours goes by "{name}"', fix) from refused


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnreachable(f"{folder} can't be made ({error.strerror}). Set SEGUE_HOME to another.") from error
