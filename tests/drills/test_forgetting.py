"""A sample of the drill of canaries; `make drill` lets a thousand sing on each database."""

from pathlib import Path

import pytest

from segue.database import sqlite_file
from segue.database.postgres_server import Server
from segue.database.sqlite import Sqlite
from segue.database.statements import SQLITE, Compiled, compile_for
from segue.runtime.forgetting import Cleaner
from tests.drills import forgetting

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
    async def no_more_than_vacuum(server: Server) -> None:
        connection = await server.connect()
        await connection.execute("vacuum (index_cleanup on)")
        await connection.close()

    monkeypatch.setattr(Server, "scrub", no_more_than_vacuum)
    found = await forgetting.run(today_dsn, tmp_path / "data", 40, 7)
    assert "index search_tokens" in found[0]


async def test_what_was_typed_stays_if_nobody_drops_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cleaner, "_drop_typed", lambda *_: None)
    [found] = await forgetting.run(str(tmp_path / "segue.db"), tmp_path / "data", 40, 7)
    assert found.endswith("file history")
