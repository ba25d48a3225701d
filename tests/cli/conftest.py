"""What tests of the command line may ask for: a home of their own, and `segue` in it."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
from click.testing import CliRunner, Result

from segue.cli import doctor
from segue.cli.host import config_here, open_configured
from segue.cli.main import main
from segue.config import Fetch
from segue.config.sections import ServerSection
from segue.core.lanes import Person
from segue.core.windows import HOSTS
from segue.runtime.server.listeners import Listener
from segue.store import Store, open_store
from tests.today import file_of_today

T = TypeVar("T")


class Home:
    """A SEGUE_HOME of a test's own."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def segue(self, *arguments: str, said: str | bytes = "", env: Mapping[str, str] | None = None) -> Result:
        """Run a command in this process."""
        return CliRunner().invoke(main, arguments, input=said, env=env, prog_name="segue")

    def json(self, *arguments: str) -> Any:
        """What a command prints with --json; it must have worked."""
        done = self.segue(*arguments, "--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    def do(self, work: Callable[[Store, Person], Awaitable[T]]) -> T:
        """Do something in the store, as the host."""

        async def run() -> T:
            async with await open_store(file_of_today(self.path / "segue.db")) as store:
                return await work(store, await store.person(HOSTS[0], "Ada"))

        return asyncio.run(run())

    def do_configured(self, work: Callable[[Store, Person], Awaitable[T]]) -> T:
        """The same in the store that segue.toml names."""

        async def run() -> T:
            async with await open_configured(config_here(Fetch.STORE)) as store:
                return await work(store, await store.person(HOSTS[0], "Ada"))

        return asyncio.run(run())


class FreeUsually(Listener):
    """A listener for whom the usual port is always free: on this machine another gateway may serve there."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, 0 if port == ServerSection().port else port)


@pytest.fixture(params=["sqlite", "postgres"])
def any_home(home: Home, request: pytest.FixtureRequest) -> Home:
    """An empty home whose segue.toml names a store of either kind."""
    dsn = request.getfixturevalue("today_dsn") if request.param == "postgres" else ""
    (home.path / "segue.toml").write_text(f'[store]\nurl = "{dsn}"\n' if dsn else "")
    return home


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """An empty home."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("SEGUE_HOME", str(folder))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor, "Listener", FreeUsually)
    return Home(folder)
