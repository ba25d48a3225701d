"""Each test of the store runs on both databases."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.changes.world import Engine, World
from tests.today import file_of_today


@pytest.fixture(params=[Engine.SQLITE, Engine.POSTGRES], ids=lambda engine: engine.value)
def engine(request: pytest.FixtureRequest) -> Engine:
    """The database to run on."""
    found: Engine = request.param
    return found


@pytest.fixture
def where(engine: Engine, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database."""
    if engine is Engine.SQLITE:
        return file_of_today(tmp_path / "segue.db")
    dsn: str = request.getfixturevalue("today_dsn")
    return dsn


@pytest.fixture
async def world(engine: Engine, where: str) -> AsyncIterator[World]:
    """A store with a clock that the test moves."""
    made = await World.open(engine, where)
    yield made
    await made.close()
