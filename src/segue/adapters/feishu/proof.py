"""The proof of a call of Feishu's: a signature over what came, and a body that only the key opens.

Law: whatever fails is answered in the same words. Otherwise the padding of a body that somebody made up would tell
them, bit by bit, what is in a genuine one.
"""

import hashlib
import hmac
from base64 import b64decode

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7
from starlette.exceptions import HTTPException
from starlette.requests import Request

from segue.core.values import Moment, Secret

AT, NONCE, PROOF = "X-Lark-Request-Timestamp", "X-Lark-Request-Nonce", "X-Lark-Signature"
_WINDOW = 86_400
"""Seconds for which a signature holds. Feishu calls again after six hours, and doesn't say that it signs anew; what was
taken in is known for longer than this."""
_BLOCK = 16


def signature(key: Secret, at: str, nonce: str, body: bytes) -> str:
    """The signature that Feishu makes of a body; an empty one without a key."""
    if not key.reveal():
        return ""
    return hashlib.sha256(f"{at}{nonce}{key.reveal()}".encode() + body).hexdigest()


def check(request: Request, key: Secret, body: bytes, now: Moment) -> None:
    """Raise 401 unless the body was signed, and not long ago."""
    at, nonce, shown = (request.headers.getlist(name) for name in (AT, NONCE, PROOF))
    if not len(at) == len(nonce) == len(shown) == 1 or not at[0].isascii() or not at[0].isdecimal():
        raise unproven()
    wanted = signature(key, at[0], nonce[0], body)
    if abs(now - int(at[0][:20])) > _WINDOW or not same(shown[0], wanted):
        raise unproven()


def opened(key: Secret, sealed: object) -> bytes:
    """What a body holds, once it is decrypted; raises 401 if it was sealed with another key."""
    try:
        raw = b64decode(sealed, validate=True) if isinstance(sealed, str) else b""
    except ValueError:
        raw = b""
    if len(raw) < 2 * _BLOCK or len(raw) % _BLOCK:
        raise unproven()
    reading = Cipher(AES(hashlib.sha256(key.reveal().encode()).digest()), CBC(raw[:_BLOCK])).decryptor()
    padded, padding = reading.update(raw[_BLOCK:]) + reading.finalize(), PKCS7(8 * _BLOCK).unpadder()
    try:
        return padding.update(padded) + padding.finalize()
    except ValueError as error:
        raise unproven() from error


def same(shown: object, secret: str) -> bool:
    """Whether somebody shows a secret; an empty one is none."""
    given = shown.encode("utf-8", "replace") if isinstance(shown, str) else b""
    return bool(secret) and hmac.compare_digest(given, secret.encode())


def unproven() -> HTTPException:
    """The answer to whatever isn't proven: always the same, so that nobody learns from it how they failed."""
    return HTTPException(401, "Send it encrypted with the key, and signed.")
