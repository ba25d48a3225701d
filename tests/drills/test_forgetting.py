"""A sample of the drill of canaries; `make drill` lets a thousand sing on each database."""

from pathlib import Path

import pytest

from segue.database import sqlite_file
from segue.database.sqlite import Sqlite
from segue.database.statements import SQLITE, Compiled, compile_for
from tests.drills import forgetting

STEPS = (
    "lay_stone_on_turn",
    "lay_stone_on_journal",
    "clear_deliveries",
    "clear_notices",
    "clear_letter",
    "drop_from_index",
    "turns_alike",
    "erasable_summaries",
    "erasable_citing",
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
