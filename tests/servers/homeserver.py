"""A real Matrix homeserver: Synapse on loopback with SQLite, open registration, and no limits on how fast one writes.

    with folder() as home:          # one for the whole test run
        ensure(home)                # in any process of the run; the first starts the server
    with Synapse.own() as server:   # one of a test's own, which it may kill and start again

A shared server is watched by a keeper, a small process that stops it when the run that owns the folder has ended,
however it ended.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from tests.ports import free_port
from tests.servers import ROOT, synapse

NAME = "segue.test"
_PATIENCE = 120.0
_OPEN = {"per_second": 10_000, "burst_count": 10_000}
_LIMITS = (
    *("rc_message", "rc_registration", "rc_registration_token_validity", "rc_admin_redaction", "rc_3pid_validation"),
    *("rc_presence", "rc_delayed_event_mgmt", "rc_reports", "rc_room_creation", "rc_user_directory"),
)


class Synapse:
    """One homeserver: its files, its port and its process."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{(self.home / 'port').read_text()}"

    @classmethod
    @contextlib.contextmanager
    def own(cls, **more: object) -> Iterator[Self]:
        """A server for one test, with more settings if need be."""
        home = Path(tempfile.mkdtemp(prefix="segue-synapse-"))
        server = cls(home)
        try:
            server.create(**more)
            server.start()
            yield server
        finally:
            server.kill()
            shutil.rmtree(home, ignore_errors=True)

    def create(self, **more: object) -> None:
        """Write the files of an empty server."""
        port = free_port()
        listener = {"port": port, "type": "http", "bind_addresses": ["127.0.0.1"], "resources": [{"names": ["client"]}]}
        settings: dict[str, object] = {
            "server_name": NAME,
            "public_baseurl": f"http://127.0.0.1:{port}/",
            "listeners": [listener],
            "database": {"name": "sqlite3", "args": {"database": str(self.home / "homeserver.db")}},
            "media_store_path": str(self.home / "media"),
            "signing_key_path": str(self.home / "signing.key"),
            "log_config": str(self.home / "log.yaml"),
            "pid_file": str(self.home / "pid"),
            "macaroon_secret_key": "m",
            "form_secret": "f",
            "registration_shared_secret": "r",
            "enable_registration": True,
            "enable_registration_without_verification": True,
            "report_stats": False,
            "trusted_key_servers": [],
            "presence": {"enabled": False},
            "bcrypt_rounds": 4,
            **dict.fromkeys(_LIMITS, _OPEN),
            "rc_login": {"address": _OPEN, "account": _OPEN, "failed_attempts": _OPEN},
            "rc_joins": {"local": _OPEN, "remote": _OPEN},
            "rc_invites": {"per_room": _OPEN, "per_user": _OPEN, "per_issuer": _OPEN},
            **more,
        }
        log = {
            "version": 1,
            "handlers": {"file": {"class": "logging.FileHandler", "filename": str(self.home / "log")}},
            "root": {"level": "WARNING", "handlers": ["file"]},
        }
        (self.home / "config.yaml").write_text(json.dumps(settings))  # JSON is YAML
        (self.home / "log.yaml").write_text(json.dumps(log))
        (self.home / "port").write_text(str(port))

    def start(self) -> None:
        """Start, and come back when it answers."""
        command = [str(synapse()), "-m", "synapse.app.homeserver", "-c", str(self.home / "config.yaml")]
        with (self.home / "output").open("ab") as output:
            self._process = subprocess.Popen(command, cwd=self.home, stdout=output, stderr=output)
        until = time.monotonic() + _PATIENCE
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"Synapse didn't start: {(self.home / 'output').read_text()}")
            time.sleep(0.05)

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/_matrix/client/versions", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False


def ensure(home: Path) -> Synapse:
    """Give the folder's server, started if it isn't running yet; any number of processes may ask at once."""
    synapse()
    with (home / "starting").open("w") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)
        if not (home / "ready").exists():
            command = [sys.executable, "-m", "tests.servers.homeserver", str(home)]
            with (home / "keeper").open("wb") as said:
                keeper = subprocess.Popen(
                    command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
                )
            until = time.monotonic() + _PATIENCE
            while not (home / "ready").exists():
                if keeper.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"Synapse didn't start: {(home / 'keeper').read_text()}")
                time.sleep(0.05)
            # It outlives this process on purpose.
            keeper.returncode = 0
    return Synapse(home)


def keep(home: Path) -> None:
    """Run the server until nobody holds the folder's `alive` lock any more."""
    with (home / "kept").open("r+") as kept, (home / "alive").open("r+") as alive:
        fcntl.flock(kept, fcntl.LOCK_EX)
        server = Synapse(home)
        server.create()
        try:
            server.start()
            (home / "ready").touch()
            fcntl.flock(alive, fcntl.LOCK_EX)
        finally:
            server.kill()


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
    os._exit(0)
