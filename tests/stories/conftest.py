"""Stories are told with a town of people and gateways that are processes of their own."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.changes import bystander
from tests.drills.gateways import Plan, start
from tests.drills.town import Town
from tests.forge import kill
from tests.stories.square import Square


class Stage:
    """A town, a database, and gateways that come and go."""

    def __init__(self, town: Town, where: str) -> None:
        self.town = town
        self.where = where

    def plan(self, **more: object) -> Plan:
        """A gateway on this stage."""
        plain: dict[str, object] = {"where": self.where, "port": self.town.port, "callback": self.town.callback}
        return Plan(**(plain | more))  # type: ignore[arg-type]  # the story's own words for a plan

    @asynccontextmanager
    async def gateway(self, **more: object) -> AsyncIterator[int]:
        """A gateway that runs until the block ends, and then is killed; yields its process id."""
        process = await asyncio.to_thread(start, self.plan(**more))
        try:
            await self.town.ready()
            assert process.pid is not None
            yield process.pid
        finally:
            await asyncio.to_thread(kill, process)


@pytest.fixture
async def stage(database: str) -> AsyncIterator[Stage]:
    """A town of four people on either database."""
    town = Town(4, seed=7)
    async with town.platform():
        yield Stage(town, database)


@pytest.fixture
def square(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Square]:
    """A square on one platform and one database; `@everywhere` tells a story on all of them."""
    platform, database = request.param
    if database == "postgres":
        where = str(request.getfixturevalue("lived_in_dsn"))
    else:
        where = bystander.file_with_bystanders(tmp_path / "segue.db")
    made = Square(platform(), where)
    yield made
    assert not bystander.changed_at(where, made.changed)
