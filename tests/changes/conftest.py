"""Each test of the store runs on both databases."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.changes import bystander
from tests.changes.world import Engine, World


@pytest.fixture(params=[Engine.SQLITE, Engine.POSTGRES], ids=lambda engine: engine.value)
def engine(request: pytest.FixtureRequest) -> Engine:
    """The database to run on."""
    found: Engine = request.param
    return found


@pytest.fixture
def where(engine: Engine, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database in which only the bystanders live."""
    if engine is Engine.SQLITE:
        return bystander.file_with_bystanders(tmp_path / "segue.db")
    dsn: str = request.getfixturevalue("lived_in_dsn")
    return dsn


@pytest.fixture
async def world(engine: Engine, where: str, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """A store with a clock that the test moves; whatever the test does, the bystanders' rows stay as they are."""
    made = await World.open(engine, where)
    yield made
    changed = await bystander.changed(made.raw, made.changed)
    await made.close()
    assert not changed, "no test is about the bystanders"
