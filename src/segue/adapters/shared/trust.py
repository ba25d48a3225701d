"""The authorities that a server's certificate is checked against, read once: reading them takes 50 ms."""

import ssl
from functools import cache

import httpx2


@cache
def trust() -> ssl.SSLContext:
    """The authorities of this machine, or those that SSL_CERT_FILE names."""
    return httpx2.create_ssl_context()
