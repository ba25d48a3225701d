"""Callers: the connections of a listener, who makes them, and which of them makes way when there are too many.

Law: a caller is a stranger until a call of theirs proves who they are. When the server is full, the oldest stranger's
connection is aborted and its place is free at once. Nobody else is ever cut off for a newcomer.
"""

import asyncio
import logging
import resource
import socket
from collections import Counter
from collections.abc import Callable, MutableMapping
from typing import Any

from segue.core.values import Value
from segue.runtime.server.proxies import Proxies, home_of

log = logging.getLogger(__name__)

_VOUCH = "segue.vouch"
_DESCRIPTORS = 65_536
_FOR_ALL_ELSE = 300
"""Open files that aren't connections of callers: databases, logs, platforms, agents."""
_FEWEST, _CONNECTIONS = 64, 4_000


class CallerLimits(Value, frozen=True):
    """Limits on the connections of a listener."""

    connections: int = 500
    """Open at once; over it the oldest one makes way that proved nothing yet."""
    address: int = 100
    """Open at once from one address; loopback and the proxies have no limit of their own."""
    head: float = 10.0
    """Seconds for the head of a request, and for a WebSocket to prove who opens it."""
    body: float = 60.0
    """Seconds for the rest of it."""
    stalled: float = 20.0
    """Seconds in which a caller must read something of what was written to them."""


def vouch(scope: MutableMapping[str, Any]) -> None:
    """Say that a call proved who makes it: its connection is no stranger's any more."""
    if note := scope.get(_VOUCH):
        note()


class Caller:
    """One connection."""

    def __init__(self, callers: "Callers", home: str) -> None:
        self.home = home
        """The address that it is counted for; empty if that has no limit."""
        self.transport: asyncio.Transport | None = None
        self.limits = callers.limits
        self._callers = callers
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._unread = 0
        self._proving = False
        """Whether its deadline is the time to prove who makes it."""

    @property
    def known(self) -> bool:
        """Whether it proved who makes it."""
        return self not in self._callers.strangers

    def vouched(self, scope: Any) -> None:
        """Let a call vouch for it."""
        scope[_VOUCH] = self._prove

    def prove_within(self, seconds: float) -> None:
        """Give the caller so long to prove who they are, unless they did."""
        self.heard()
        if not self.known:
            self._proving = True
            self.wait(seconds)

    def _prove(self) -> None:
        self._callers.strangers.pop(self, None)
        if self._proving:
            self._proving = False
            self.heard()

    def abort(self) -> None:
        """Close it now, whatever waits to be written; its place is free at once."""
        self._callers.left(self)
        if self.transport is not None:
            self.transport.abort()

    def wait(self, seconds: float) -> None:
        """Give the caller so long for what comes next."""
        self.heard()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.abort)

    @property
    def waits(self) -> bool:
        """Whether the caller has a deadline."""
        return self._deadline is not None

    def heard(self) -> None:
        """Note that what was waited for came."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def paused(self) -> None:
        """Note that more waits to be read than is written ahead: the caller must read on."""
        if self.transport is not None:
            self._unread = self.transport.get_write_buffer_size()
            self._stalled = asyncio.get_running_loop().call_later(self.limits.stalled, self._look)

    def resumed(self) -> None:
        """Note that it was read."""
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _look(self) -> None:
        if self.transport is not None and self.transport.get_write_buffer_size() < self._unread:
            self.paused()
        else:
            self.abort()

    def lost(self) -> None:
        """Note that it is closed."""
        self.heard()
        self.resumed()
        self._callers.left(self)


class Callers:
    """The connections of one listener."""

    def __init__(self, limits: CallerLimits, proxies: Proxies) -> None:
        self.limits = limits
        self._proxies = proxies
        self.strangers: dict[Caller, None] = {}
        """The connections that proved nothing yet, the oldest first."""
        self._open: set[Caller] = set()
        self._homes = Counter[str]()
        self._left = asyncio.Event()

    def __len__(self) -> int:
        return len(self._open)

    async def admit(self, address: str) -> Caller | None:
        """Return a place for a new connection as soon as there is one; None if its address has too many."""
        home = "" if self._proxies.unlimited(address) else home_of(address)
        if home and self._homes[home] >= self.limits.address and not self._make_way(home):
            return None
        while len(self._open) >= self.limits.connections and not self._make_way():
            self._left.clear()
            await self._left.wait()
        caller = Caller(self, home)
        self._open.add(caller)
        self._homes[home] += 1
        if address:
            # Only its user can open a socket in the data folder, which has no address.
            self.strangers[caller] = None
        return caller

    def left(self, caller: Caller) -> None:
        """Note that a connection is gone."""
        self.strangers.pop(caller, None)
        if caller in self._open:
            self._open.discard(caller)
            self._homes[caller.home] -= 1
            if not self._homes[caller.home]:
                del self._homes[caller.home]
            self._left.set()

    def _make_way(self, home: str = "") -> bool:
        """Abort the oldest stranger's connection, from one address if it is named; False if there is none."""
        oldest = next((caller for caller in self.strangers if not home or caller.home == home), None)
        if oldest is not None:
            oldest.abort()
        return oldest is not None


async def accept(listening: socket.socket, callers: Callers, serve: Callable[[socket.socket, Caller], None]) -> None:
    """Accept connections until cancelled, each only once there is a place for it."""
    loop, told = asyncio.get_running_loop(), False
    while True:
        try:
            connection, address = await loop.sock_accept(listening)
        except OSError as error:
            if not told:
                log.warning("no connection can be accepted, trying again each second: %s", error)
            told = True
            await asyncio.sleep(1)
            continue
        told = False
        try:
            caller = await callers.admit(address[0] if address else "")
        except BaseException:
            connection.close()
            raise
        if caller is None:
            connection.close()
        else:
            serve(connection, caller)


def more_descriptors() -> None:
    """Let this process open as many files as the system lets it, since each connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connections() -> int:
    """Return the number of connections that leave enough open files for all else."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _CONNECTIONS if soft == resource.RLIM_INFINITY else max(_FEWEST, min(soft - _FOR_ALL_ELSE, _CONNECTIONS))
