"""What every story here may ask for: a world, in which Segue is run in one way or another."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.platforms.world import Way, World, world
from tests.servers.homeserver import Synapse

Worlds = Callable[..., AbstractAsyncContextManager[World]]


@pytest.fixture
def worlds(tmp_path: Path, request: pytest.FixtureRequest) -> Worlds:
    """Makes a world with one platform in it, or Telegram and Matrix; a database only for the way that needs one."""

    def make(way: Way, platform: str = "") -> AbstractAsyncContextManager[World]:
        dsn = request.getfixturevalue("today_dsn") if way is Way.POSTGRES else ""
        synapse: Synapse | None = request.getfixturevalue("synapse") if platform in {"", "matrix"} else None
        return world(tmp_path, synapse, way=way, dsn=dsn, platforms=(platform or "telegram",))

    return make
