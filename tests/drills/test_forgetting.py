"""A sample of the drill of canaries; `make drill` lets a thousand sing on each database."""

import asyncio
import re
from importlib.resources import files
from pathlib import Path

import asyncpg
import pytest

from segue.database import postgres_server, sqlite_file
from segue.database.postgres_server import Server
from segue.database.sqlite import Sqlite
from segue.database.statements import SQLITE, Compiled, compile_for
from segue.runtime.forgetting import Cleaner
from tests.drills import forgetting
from tests.drills.remains import remains
from tests.full import on_sqlite

STEPS = (
    "lay_stone_on_turn",
    "lay_stone_on_journal",
    "clear_deliveries",
    "clear_notices",
    "clear_asked",
    "clear_letter",
    "drop_from_index",
    "turns_alike",
    "erasable_summaries",
    "erasable_citing",
    "drop_note",
    "drop_notes_told",
)
"""What a forgetting does, or looks for, beside the stones of its entries."""


@on_sqlite
async def test_a_forgotten_canary_is_in_no_byte_that_is_left(database: str, tmp_path: Path) -> None:
    assert await forgetting.run(database, tmp_path / "data", 8, 7) == []


@pytest.mark.parametrize("step", STEPS)
async def test_each_step_that_is_left_out_leaves_a_canary(step: str, tmp_path: Path) -> None:
    queries = dict(compile_for(SQLITE)) | {step: Compiled("select 1 where 0", ())}
    driver = await Sqlite.open(tmp_path / "segue.db", queries=queries)
    assert await forgetting.run(str(tmp_path / "segue.db"), tmp_path / "data", 40, 7, driver)


async def test_free_pages_that_are_not_overwritten_keep_a_canary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsafe = sqlite_file._SETTINGS.replace("secure_delete = on", "secure_delete = off")
    monkeypatch.setattr(sqlite_file, "_SETTINGS", unsafe)
    assert await forgetting.run(str(tmp_path / "segue.db"), tmp_path / "data", 40, 7)


async def test_a_file_that_is_not_scrubbed_keeps_a_canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file.SqliteFile, "scrub", lambda _: True)
    assert await forgetting.run(str(tmp_path / "segue.db"), tmp_path / "data", 40, 7)


async def test_an_index_on_a_server_that_is_not_built_anew_keeps_a_canary(
    today_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_more_than_vacuum(server: Server) -> bool:
        connection = await server.connect()
        await connection.execute("vacuum (index_cleanup on)")
        await connection.close()
        return True

    monkeypatch.setattr(Server, "scrub", no_more_than_vacuum)
    found = await forgetting.run(today_dsn, tmp_path / "data", 40, 7)
    assert "index search_tokens" in found[0]


async def test_on_a_server_the_receipt_comes_when_nobody_reads_from_before_any_more(
    today_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaned, looked, scrub = list[bool](), asyncio.Event(), Server.scrub

    async def watched(server: Server) -> bool:
        cleaned.append(await scrub(server))
        looked.set()
        return cleaned[-1]

    monkeypatch.setattr(Server, "scrub", watched)
    monkeypatch.setattr(postgres_server, "_LOOKS", 3)
    reader = await asyncpg.connect(today_dsn, user="postgres")
    async with asyncio.timeout(60), forgetting.cage(today_dsn, tmp_path) as caged:
        asked, _ = await caged.says("my secret is zqcanary")
        async with reader.transaction(isolation="repeatable_read"):
            seen = "select count(*) from segue.entries where parts like '%zqcanary%'"
            before = await reader.fetchval(seen)
            await caged.says("/forget", quotes=asked)
            receipt = asyncio.create_task(caged.says("/yes"))
            await looked.wait()
            assert await reader.fetchval(seen) == before > 0
            assert cleaned == [False]
            assert not receipt.done()
        _, told = await receipt
        assert told.startswith("Forgotten:")
        assert cleaned[-1]
        assert await remains(today_dsn, "zqcanary") == []
    await reader.close()


def test_every_table_that_loses_words_is_vacuumed() -> None:
    queries = files("segue.database").joinpath("queries/forgetting.sql").read_text("utf-8")
    changed = re.findall(r"^(?:update|delete from) (\w+)", queries, re.MULTILINE)
    assert set(changed) - {"forgettings", "runs"} <= set(postgres_server._WORDY), "these two have no words in them"


async def test_what_was_typed_stays_if_nobody_drops_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cleaner, "_drop_typed", lambda *_: None)
    [found] = await forgetting.run(str(tmp_path / "segue.db"), tmp_path / "data", 40, 7)
    assert found.endswith("file history")
