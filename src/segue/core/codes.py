"""One-time codes that people type: short, without characters that look alike, known to the store by a digest."""

from __future__ import annotations

import hashlib
import hmac
import unicodedata

ALPHABET = "234679CDFGHJKMNPQRTVWXY"
"""Neither 0 and O, 1, I and L, 2 and Z, 5 and S, 8 and B, U and V, nor vowels that could make a word."""
LENGTH = 8
RANDOMNESS = 16
"""Bytes that a code is made of: so many more than it holds that every code is as likely as any other."""


def make_code(randomness: bytes) -> str:
    """A code as it is shown: `CDFG-HJ34`."""
    if len(randomness) != RANDOMNESS:
        raise ValueError(f"a code needs {RANDOMNESS} random bytes")
    number, letters = int.from_bytes(randomness), ""
    for _ in range(LENGTH):
        number, letter = divmod(number, len(ALPHABET))
        letters += ALPHABET[letter]
    return f"{letters[:4]}-{letters[4:]}"


def read_code(typed: str) -> str:
    """A code as it counts: however it was grouped, and in whichever case."""
    return "".join(c for c in unicodedata.normalize("NFKC", typed).upper() if c.isalnum())


def digest(secret: bytes, typed: str) -> str:
    """What the store keeps of a code: nobody can tell the code from it, or look for one, without the secret."""
    return hmac.new(secret, read_code(typed).encode("utf-8", "replace"), hashlib.sha256).hexdigest()
