"""Two versions side by side: a newer Segue upgrades the database while an older one runs on it."""

import asyncio
import re
from pathlib import Path

import pytest

from segue.database.statements import newest_version
from segue.errors import StoreTooNew
from segue.store import open_store
from tests.drills.gateways import LATER, start
from tests.forge import kill
from tests.ports import free_port
from tests.stories.conftest import Stage


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of the test's own: it is a later version's when the test is over."""
    return str(request.getfixturevalue("postgres_dsn") if request.param == "postgres" else tmp_path / "segue.db")


async def test_an_older_program_goes_on_beside_a_newer_one_and_is_refused_once_it_ends(
    stage: Stage, tmp_path: Path
) -> None:
    town, log, port = stage.town, tmp_path / "log", free_port()
    async with stage.gateway(log=str(log)):
        await town.say("ann", "ann-message-1")
        await town.hears("ann", "I am ann-message-1")
        newer = await asyncio.to_thread(start, stage.plan(port=port, newer=True))
        try:
            # The older one notices, says so, and takes messages in as before; each answers what it takes in.
            async with asyncio.timeout(60):
                while f"version {LATER[0][0]}" not in log.read_text():  # noqa: ASYNC110 -- a file tells nobody
                    await asyncio.sleep(0.05)
            await town.ready(port)
            for n in range(2, 5):
                await asyncio.gather(
                    town.say("ann", f"ann-message-{n}"),
                    town.say("bob", f"bob-message-{n}"),
                    town.call("cat", f"cat-message-{n}", port=port),
                )
                for chat in ("ann", "bob", "cat"):
                    await town.hears(chat, f"I am {chat}-message-{n}")
        finally:
            await asyncio.to_thread(kill, newer)
        # What the newer one held is taken over.
        await town.say("cat", "cat-message-5")
        await town.hears("cat", "I am cat-message-5")
    assert [len(town.texts(chat)) for chat in ("ann", "bob", "cat")] == [4, 3, 4]
    where = stage.where if stage.where.startswith("postgresql://") else Path(stage.where)
    known = (
        f"is at version {LATER[0][0]} and this Segue knows versions up to {newest_version()}. Install a newer Segue."
    )
    with pytest.raises(StoreTooNew, match=re.escape(known)):
        await open_store(where)
