"""`segue serve` before its database server: it waits, says so, and begins once the server answers."""

import asyncio
import signal
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import apsw
import msgspec
import pytest

from segue.cli.gateway import Stop, _up, gateway
from segue.cli.host import open_configured
from segue.config import default
from segue.core.contracts.database import Driver
from segue.core.values import Secret
from segue.database.sqlite_file import SqliteFile
from segue.runtime.server.listeners import Listener
from segue.store import open_driver
from tests.forge import piped
from tests.ports import free_port
from tests.postgres import Postgres


async def test_a_server_that_is_not_up_yet_is_waited_for(
    tmp_path: Path, postgres_dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder, later = parse_qs(urlsplit(postgres_dsn).query)["host"][0], tmp_path / "later"
    dsn = postgres_dsn.replace(quote(folder, safe=""), quote(str(later), safe=""))
    config = msgspec.structs.replace(default({"SEGUE_HOME": str(tmp_path)}), store=Secret(dsn))
    waiting = asyncio.create_task(_up(config, Stop()))
    await says_that_it_waits(caplog)
    assert not waiting.done()
    later.symlink_to(folder)
    async with asyncio.timeout(90):
        store = await waiting
    assert store is not None
    await store.close()


async def test_a_file_that_another_process_keeps_locked_is_waited_for_and_opened_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteFile, "_wait", lambda *_: False)
    config = default({"SEGUE_HOME": str(tmp_path)})
    assert isinstance(config.store, Path)
    await (await open_configured(config)).close()
    neighbour = apsw.Connection(str(config.store))
    neighbour.execute("begin immediate")
    waiting = asyncio.create_task(_up(config, Stop()))
    await says_that_it_waits(caplog)
    neighbour.execute("rollback")
    neighbour.close()
    async with asyncio.timeout(90):
        store = await waiting
    assert store is not None
    opened, open_again = [], open_driver

    async def count(*args: Any, **kwargs: Any) -> Driver:
        opened.append(args)
        return await open_again(*args, **kwargs)

    monkeypatch.setattr("segue.store.open_driver", count)
    async with gateway(config, Listener("127.0.0.1", 0), store=store):
        assert opened == []


async def says_that_it_waits(caplog: pytest.LogCaptureFixture) -> None:
    async with asyncio.timeout(90):
        while "waiting for the database" not in caplog.text:  # noqa: ASYNC110 -- nobody tells
            await asyncio.sleep(0.01)


async def test_who_asks_to_stop_meanwhile_is_heard(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = default({"SEGUE_HOME": str(tmp_path)})
    config = msgspec.structs.replace(config, store=Secret(f"postgresql://nobody@127.0.0.1:{free_port()}/none"))
    stop = Stop()
    waiting = asyncio.create_task(_up(config, stop))
    await says_that_it_waits(caplog)
    stop._asked.set()
    async with asyncio.timeout(90):
        assert await waiting is None


async def test_segue_serve_begins_once_a_server_is_started(tmp_path: Path, durable_postgres: Postgres) -> None:
    dsn = durable_postgres.dsn(durable_postgres.create_database())
    (tmp_path / "segue.toml").write_text('[store]\nurl = "env:LATER"')
    await asyncio.to_thread(durable_postgres.stop)
    async with asyncio.timeout(60), piped("serve", "--port", "0", home=tmp_path, LATER=dsn) as process:
        while "waiting for the database" not in (await process.stderr.readline()).decode():
            pass
        await asyncio.to_thread(durable_postgres.start)
        assert (await process.stdout.readline()).startswith(b"Segue listens on http://127.0.0.1:")
        process.send_signal(signal.SIGTERM)
        assert (await process.end())[0] == 0
