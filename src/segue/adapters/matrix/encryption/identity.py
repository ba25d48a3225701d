"""The bot's identity: the keys by which its account vouches for its device, so that others' clients trust it.

An account has a master key, which vouches for a key that signs the account's own devices (and for one that would sign
other users, which a bot never does). They are made once; if another client made them, the recovery key opens them.
"""

import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping

import msgspec
from Crypto.Cipher import AES
from Crypto.Hash import SHA256, SHA512
from Crypto.Protocol.KDF import HKDF, PBKDF2
from Crypto.PublicKey import ECC
from Crypto.Signature import eddsa
from nio.api import Api
from unpaddedbase64 import decode_base64, encode_base64

from segue.adapters.matrix.encryption import Opens
from segue.adapters.matrix.encryption.keyring import Keyring
from segue.adapters.matrix.events import inside
from segue.adapters.matrix.homeserver import Homeserver, Json
from segue.errors import SendNever

_DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_RECOVERY = bytes((0x8B, 0x01))
"""The first bytes of a recovery key."""
_ROLES = ("master", "self_signing", "user_signing")
_OTHERS = (
    "its account has keys that another client made, so that nobody vouches for this device. Give their recovery key as "
    "`recovery`, or reset them in that client."
)


class SigningKey:
    """An Ed25519 key of the account."""

    def __init__(self, seed: bytes) -> None:
        self._key = ECC.construct(curve="Ed25519", seed=seed)
        self.public = encode_base64(self._key.public_key().export_key(format="raw"))

    @property
    def id(self) -> str:
        """Its name among signatures."""
        return f"ed25519:{self.public}"

    def signed(self, user: str, thing: Json) -> Json:
        """A thing with its signature, beside those that it has."""
        bare = {key: value for key, value in thing.items() if key not in {"signatures", "unsigned"}}
        signature = eddsa.new(self._key, "rfc8032").sign(Api.to_canonical_json(bare).encode())
        known = inside(thing, "signatures", user)
        return bare | {"signatures": {user: {**known, self.id: encode_base64(signature)}}}


class Vouching:
    """Sees to it that the account vouches for its device."""

    def __init__(self, server: Homeserver, opens: Opens, ring: Keyring, keep: Callable[[], Awaitable[None]]) -> None:
        self._server = server
        self._opens = opens
        self._ring = ring
        self._keep = keep
        self._me = server.user

    async def vouch(self) -> str:
        """Sign the device, if nobody did; returns what is in the way."""
        told = await self._server.call("POST", ("keys", "query"), {"device_keys": {self._me: []}})
        master = next(iter(inside(told, "master_keys", self._me, "keys").values()), "")
        signing = next(iter(inside(told, "self_signing_keys", self._me, "keys").values()), "")
        device = inside(told, "device_keys", self._me, self._ring.device)
        keys = self._own()
        try:
            if not master:
                keys = keys or await self._made()
                await self._server.upload_identity(self._public(keys), self._opens.password)
                signing = keys["self_signing"].public
            signer = keys["self_signing"] if keys and keys["self_signing"].public == signing else None
            signer = signer or await self._recovered(signing)
            if signer is None:
                return _OTHERS
            if signer.id not in inside(device, "signatures", self._me):
                signed = {self._me: {self._ring.device: signer.signed(self._me, device)}}
                await self._server.call("POST", ("keys", "signatures", "upload"), signed)
        except SendNever as error:
            return f"nobody vouches for its device: {error}"
        return ""

    def _own(self) -> dict[str, SigningKey]:
        """The keys that were made here."""
        kept = self._ring.secret("identity")
        seeds = msgspec.json.decode(kept, type=dict[str, bytes]) if kept else {}
        return {role: SigningKey(seed) for role, seed in seeds.items()}

    async def _made(self) -> dict[str, SigningKey]:
        """New keys, which are durable before the homeserver hears of them."""
        seeds = {role: secrets.token_bytes(32) for role in _ROLES}
        self._ring.save_secret("identity", msgspec.json.encode(seeds))
        await self._keep()
        return {role: SigningKey(seed) for role, seed in seeds.items()}

    def _public(self, keys: Mapping[str, SigningKey]) -> Json:
        shown = {r: {"user_id": self._me, "usage": [r], "keys": {k.id: k.public}} for r, k in keys.items()}
        return {
            f"{role}_key": thing if role == "master" else keys["master"].signed(self._me, thing)
            for role, thing in shown.items()
        }

    async def _recovered(self, public: str) -> SigningKey | None:
        """The key that another client made, if `recovery` opens it."""
        if not self._opens.recovery.reveal():
            return None
        default = await self._server.account_data("m.secret_storage.default_key")
        about = await self._server.account_data(f"m.secret_storage.key.{default.get('key')}")
        name = "m.cross_signing.self_signing"
        stored = inside(await self._server.account_data(name), "encrypted", str(default.get("key")))
        try:
            opener = _recovery_key(self._opens.recovery.reveal(), inside(about, "passphrase"))
            key = SigningKey(decode_base64(_opened(opener, name, stored).decode()))
        except (ValueError, KeyError, TypeError) as error:
            raise SendNever("its recovery key opens nothing. See `recovery` in its settings.") from error
        return key if key.public == public else None


def _recovery_key(given: str, about: Json) -> bytes:
    """The 32 bytes that a recovery key stands for, or a phrase."""
    number = 0
    letters = given.replace(" ", "")
    if not set(letters) <= set(_DIGITS) or len(letters) < 40:
        return PBKDF2(given, str(about["salt"]).encode(), 32, int(about["iterations"]), hmac_hash_module=SHA512)
    for letter in letters:
        number = number * 58 + _DIGITS.index(letter)
    raw = number.to_bytes(35)
    if not raw.startswith(_RECOVERY) or _parity(raw):
        raise ValueError("no recovery key")
    return raw[2:34]


def _parity(raw: bytes) -> int:
    found = 0
    for one in raw:
        found ^= one
    return found


def _opened(key: bytes, name: str, stored: Json) -> bytes:
    """A secret out of the account's secret storage."""
    derived = HKDF(key, 64, b"\0" * 32, SHA256, context=name.encode())
    sealed = decode_base64(stored["ciphertext"])
    digest = hmac.new(derived[32:], sealed, hashlib.sha256).digest()
    if not hmac.compare_digest(digest, decode_base64(stored["mac"])):
        raise ValueError("another key")
    cipher = AES.new(derived[:32], AES.MODE_CTR, nonce=b"", initial_value=decode_base64(stored["iv"]))
    return cipher.decrypt(sealed)
