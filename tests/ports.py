"""Ports for servers that a test starts by number, and starts again at the same one."""

import contextlib
import secrets
import socket

_PORTS = range(10240, 32768)
"""Below those that Linux gives to whoever connects: while a server is down, no connection takes its port."""
_TRIES = 1000


def free_port() -> int:
    """A port that nobody listens at."""
    for _ in range(_TRIES):
        port = secrets.choice(_PORTS)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise OSError(f"none of {_TRIES} ports is free")
