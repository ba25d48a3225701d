"""What every test may ask for: a database of its own on a real PostgreSQL server, a real Matrix homeserver."""

import asyncio
import contextlib
import gc
import os
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import hypothesis
import pytest

from segue.store import open_driver
from tests.changes import bystander
from tests.parts import Part, lack, left_out, missing, require
from tests.postgres import Durability, Postgres, PostgresUnavailable, deadlocks, ensure, folder
from tests.servers import homeserver

# Whatever this machine is set to: the clock's zone, and what its user set for a Segue of their own.
os.environ["TZ"] = "UTC"
time.tzset()
for setting in {name for name in os.environ if name.startswith("SEGUE_")} - {"SEGUE_CACHE", "SEGUE_WITHOUT"}:
    del os.environ[setting]

# The same examples in every run, however slow the machine. `make drill` takes more, new ones each time.
hypothesis.settings.register_profile(
    "test",
    max_examples=100,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
    "drill", hypothesis.settings.get_profile("test"), max_examples=2_000, derandomize=False
)
hypothesis.settings.load_profile("test")

POSTGRES_HOME = pytest.StashKey[Path]()
SYNAPSE_HOME = pytest.StashKey[Path]()
RUN = pytest.StashKey[contextlib.ExitStack]()


class Worker(Protocol):
    """A worker of pytest-xdist, as the process that starts it sees it."""

    config: pytest.Config
    workerinput: dict[str, str]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run the cases that `make test` leaves out, and only those")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the rest of the full matrices, or run nothing else."""
    full = config.getoption("--full")
    others = [item for item in items if (item.get_closest_marker("full") is not None) is not full]
    config.hook.pytest_deselected(items=others)
    left = {id(item) for item in others}
    items[:] = [item for item in items if id(item) not in left]


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport | pytest.CollectReport) -> tuple[str, str, str] | None:
    """Count what is skipped for want of a part by the name of the part, in the closing line too."""
    name = missing(report) if isinstance(report, pytest.TestReport) else ""
    return (name, "s", "SKIPPED") if name else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say why each part is missing, once."""
    stats = terminalreporter.stats
    for name in sorted(name for name in stats if name.startswith("without ")):
        reasons = sorted({report.longrepr[2].removeprefix(f"Skipped: {name}: ") for report in stats[name]})
        terminalreporter.write_line(f"{name}: {len(stats[name])} skipped, {'; '.join(reasons)}")


def pytest_configure(config: pytest.Config) -> None:
    try:
        left_out()
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error
    run = config.stash[RUN] = contextlib.ExitStack()
    workerinput: dict[str, str] | None = getattr(config, "workerinput", None)
    if workerinput is None:
        config.stash[POSTGRES_HOME] = run.enter_context(folder())
        config.stash[SYNAPSE_HOME] = run.enter_context(folder())
    else:
        config.stash[POSTGRES_HOME] = Path(workerinput["postgres_home"])
        config.stash[SYNAPSE_HOME] = Path(workerinput["synapse_home"])


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[RUN].close()


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Two for each core: tests wait for disks, processes and servers more than they work."""
    return 2 * (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Worker) -> None:
    node.workerinput["postgres_home"] = str(node.config.stash[POSTGRES_HOME])
    node.workerinput["synapse_home"] = str(node.config.stash[SYNAPSE_HOME])


def pytest_collection_finish() -> None:
    """What was imported stays: the collector of cycles need not look through all of it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def postgres(pytestconfig: pytest.Config) -> Postgres:
    """The server that the whole run shares."""
    require(Part.POSTGRESQL)
    try:
        return ensure(pytestconfig.stash[POSTGRES_HOME])
    except PostgresUnavailable as reason:
        lack(Part.POSTGRESQL, str(reason))


@pytest.fixture
def postgres_dsn(postgres: Postgres) -> Iterator[str]:
    """An empty database, owned by an ordinary role."""
    database = postgres.create_database()
    yield postgres.dsn(database)
    postgres.drop_database(database)


@pytest.fixture(scope="session")
def today(postgres: Postgres) -> Iterator[str]:
    """The name of this process' database with today's schema; no test leaves a deadlock in it.

    Whoever loses one tries again, so only latency tells of it: two transactions take the same locks in another order.
    """
    name = postgres.create_database()

    async def migrate() -> None:
        await (await open_driver(postgres.dsn(name))).close()

    # In a thread: a test that asks for the fixture while it runs has a loop already.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, migrate()).result()
        yield name
        found = thread.submit(asyncio.run, deadlocks(postgres.dsn(name, "postgres"))).result()
    assert found == 0, f"PostgreSQL resolved {found} deadlocks: {postgres.deadlocks()}"


@pytest.fixture(scope="session")
def emptied(postgres: Postgres, today: str) -> Iterator[Callable[..., None]]:
    """Takes out of that database what is in it, then runs more SQL."""
    with postgres.emptying(today) as empty:
        yield empty


@pytest.fixture
def today_dsn(postgres: Postgres, today: str, emptied: Callable[..., None]) -> str:
    """That database, without what earlier tests left in it."""
    emptied()
    return postgres.dsn(today)


@pytest.fixture(scope="session")
def lived_in(postgres: Postgres, today: str, emptied: Callable[..., None]) -> Callable[[], None]:
    """Takes everything out of that database but the bystanders."""
    emptied()
    bystander.settle_in_postgres(postgres.dsn(today))
    return lambda: emptied(bystander.COME_BACK)


@pytest.fixture
def lived_in_dsn(postgres: Postgres, today: str, lived_in: Callable[[], None]) -> str:
    """That database, with nobody in it but the bystanders."""
    lived_in()
    return postgres.dsn(today)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where a database with today's schema is, on either kind; the bystanders who live in it stay as they are."""
    if request.param == "postgres":
        where = str(request.getfixturevalue("lived_in_dsn"))
    else:
        where = bystander.file_with_bystanders(tmp_path / "segue.db")
    yield where
    assert not bystander.changed_at(where)


@pytest.fixture
def durable_postgres() -> Iterator[Postgres]:
    """A server of the test's own that syncs its commits and may be stopped and started."""
    require(Part.POSTGRESQL)
    with folder() as home:
        try:
            server = ensure(home, Durability.FULL)
        except PostgresUnavailable as reason:
            lack(Part.POSTGRESQL, str(reason))
        yield server


@pytest.fixture(scope="session")
def synapse(pytestconfig: pytest.Config) -> homeserver.Synapse:
    """The Matrix homeserver that the whole run shares."""
    return homeserver.ensure(pytestconfig.stash[SYNAPSE_HOME])
