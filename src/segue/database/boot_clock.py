"""The boot clock: seconds that never jump, set once a boot to about the time of day.

Law: within a boot it runs on, whatever anybody does to the time of day; all processes that share a file agree on it. A
new boot sets it anew, never to before what it said last, and ends every lease.
"""

import subprocess
import time
from pathlib import Path

import apsw

from segue.core.contracts.database import Clock

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_NAME = "clock"


def boot_id() -> str:
    """This boot of this machine."""
    try:
        return _BOOT.read_text("ascii").strip()
    except OSError:
        return subprocess.run(
            ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True, check=False
        ).stdout.strip()


def since_boot() -> float:
    """Seconds since the machine was started, sleep included."""
    return time.clock_gettime(_CLOCK)


def set_clock(connection: apsw.Connection, wall: Clock = time.time) -> Clock:
    """The clock of a file, set anew if the machine was started since."""
    boot = boot_id()
    base = _known(connection, boot)
    if base is None:
        connection.execute("begin immediate")
        try:
            base = _known(connection, boot)
            if base is None:
                ((latest,),) = connection.execute("select coalesce(max(expires), 0) from replicas")
                base = max(wall(), float(latest)) - since_boot()
                connection.execute("insert or replace into settings values (?, ?)", (_NAME, f"{boot} {base!r}"))
                connection.execute("update replicas set expires = 0")
            connection.execute("commit")
        finally:
            if connection.in_transaction:
                connection.execute("rollback")
    return _from(base)


def clock_in(connection: apsw.Connection) -> Clock:
    """The clock of a file that is only looked at."""
    base = _known(connection, boot_id())
    return time.time if base is None else _from(base)


def _known(connection: apsw.Connection, boot: str) -> float | None:
    """Seconds added to the boot clock in this boot; None if nobody has set them yet."""
    if not connection.execute("select 1 from sqlite_schema where name = 'settings'").fetchall():
        return None
    for (value,) in connection.execute("select value from settings where name = ?", (_NAME,)).fetchall():
        known, _, base = str(value).partition(" ")
        if known == boot:
            return float(base)
    return None


def _from(base: float) -> Clock:
    return lambda: base + since_boot()
