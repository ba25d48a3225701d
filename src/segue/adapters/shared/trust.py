"""The certificate authorities for TLS, read once: reading them takes 50 ms."""

import ssl
from functools import cache

import httpx2


@cache
def trust() -> ssl.SSLContext:
    """Return this machine's certificate authorities, or those in SSL_CERT_FILE."""
    return httpx2.create_ssl_context()
