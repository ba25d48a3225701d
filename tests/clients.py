"""HTTP clients for servers on this machine."""

from typing import Any

import httpx2


def http_client(**options: Any) -> httpx2.AsyncClient:
    """A client for plain HTTP on loopback: without proxy, and without certificates, which take 50 ms to read."""
    return httpx2.AsyncClient(trust_env=False, verify=False, **options)
