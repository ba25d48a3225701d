"""Opens a store by its address: a file for SQLite, a `postgresql://` address for PostgreSQL."""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path

from segue.core.contracts import Clock, Driver, Ids
from segue.core.moves import Limits
from segue.errors import StoreUnreachable
from segue.store.sqlite import Sqlite
from segue.store.store import Store


async def open_store(
    where: str | Path, *, clock: Clock = time.time, ids: Ids | None = None, limits: Limits | None = None
) -> Store:
    """Open a store, its database made or brought up to date; `async with` closes it again."""
    return Store(await open_driver(where), clock, ids, limits)


async def open_driver(where: str | Path) -> Driver:
    """Open the database behind a store."""
    address = str(where)
    if address.startswith(("postgresql://", "postgres://")):
        try:
            # The one import that hides: PostgreSQL's library is an extra.
            postgres = import_module("segue.store.postgres")
        except ModuleNotFoundError as error:
            raise StoreUnreachable("PostgreSQL needs its library: install `segue[postgres]`.") from error
        opened: Driver = await postgres.Postgres.open(address)
        return opened
    return await Sqlite.open(Path(where))
