"""The bot's identity: the keys by which its account vouches for its device, so that others' clients trust it.

An account has a master key, which vouches for a key that signs the account's own devices. They are made once; if
another client made them, the recovery key opens them. A third one would sign other users, which a bot never does.
"""

from functools import reduce
from operator import xor

from Crypto.Cipher import AES
from Crypto.Hash import HMAC, SHA256, SHA512
from Crypto.Protocol.KDF import HKDF, PBKDF2
from Crypto.PublicKey import ECC
from Crypto.Signature import eddsa
from nio.api import Api
from unpaddedbase64 import decode_base64, encode_base64

from segue.adapters.matrix.encryption.keyring import Keyring
from segue.adapters.matrix.homeserver import Homeserver, Json
from segue.adapters.shared.decoding import inside
from segue.errors import SendNever

_DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_OTHERS = (
    "its account has keys that another client made, so that nobody vouches for this device. Give their recovery key as "
    "`recovery`, or reset them in that client."
)


class SigningKey:
    """An Ed25519 key of the account."""

    def __init__(self, seed: bytes) -> None:
        self._key = ECC.construct(curve="Ed25519", seed=seed)
        self._public = encode_base64(self._key.public_key().export_key(format="raw"))
        self.id = f"ed25519:{self._public}"

    def shown(self, user: str, role: str) -> Json:
        return {"user_id": user, "usage": [role], "keys": {self.id: self._public}}

    def signed(self, user: str, thing: Json) -> Json:
        bare = {key: value for key, value in thing.items() if key not in {"signatures", "unsigned"}}
        signature = eddsa.new(self._key, "rfc8032").sign(Api.to_canonical_json(bare).encode())
        signatures = {**inside(thing, "signatures", user), self.id: encode_base64(signature)}
        return bare | {"signatures": {user: signatures}}


async def vouch(server: Homeserver, ring: Keyring, told: Json, device: Json) -> str:
    """Sign the account's device, if nobody did, by what the homeserver told of both; returns what is in the way."""
    me, seeds = server.user, await ring.identity()
    master, signer = SigningKey(seeds["master"]), SigningKey(seeds["self_signing"])
    try:
        if not inside(told, "master_keys", me, "keys"):
            signing = master.signed(me, signer.shown(me, "self_signing"))
            await server.upload_identity({"master_key": master.shown(me, "master"), "self_signing_key": signing})
        elif signer.id not in (known := inside(told, "self_signing_keys", me, "keys")):
            found = await _recovered(server)
            if found is None or found.id not in known:
                return _OTHERS
            signer = found
        if signer.id not in inside(device, "signatures", me):
            signed = {me: {ring.device: signer.signed(me, device)}}
            await server.call("POST", ("keys", "signatures", "upload"), signed)
    except SendNever as error:
        return f"nobody vouches for its device: {error}"
    return ""


async def _recovered(server: Homeserver) -> SigningKey | None:
    if not server.recovery.reveal():
        return None
    name, default = "m.cross_signing.self_signing", await server.account_data("m.secret_storage.default_key")
    about = await server.account_data(f"m.secret_storage.key.{default.get('key')}")
    stored = inside(await server.account_data(name), "encrypted", str(default.get("key")))
    try:
        opener = _recovery_key(server.recovery.reveal(), inside(about, "passphrase"))
        derived = HKDF(opener, 64, b"\0" * 32, SHA256, context=name.encode())
        sealed = decode_base64(stored["ciphertext"])
        HMAC.new(derived[32:], sealed, SHA256).verify(decode_base64(stored["mac"]))
        cipher = AES.new(derived[:32], AES.MODE_CTR, nonce=b"", initial_value=decode_base64(stored["iv"]))
        return SigningKey(decode_base64(cipher.decrypt(sealed).decode()))
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise SendNever("its recovery key opens nothing. See `recovery` in its settings.") from error


def _recovery_key(given: str, about: Json) -> bytes:
    letters = given.replace(" ", "")
    if not set(letters) <= set(_DIGITS) or len(letters) < 40:
        return PBKDF2(given, str(about["salt"]).encode(), 32, int(about["iterations"]), hmac_hash_module=SHA512)
    raw = reduce(lambda number, letter: number * 58 + _DIGITS.index(letter), letters, 0).to_bytes(35)
    if not raw.startswith(b"\x8b\x01") or reduce(xor, raw):
        raise ValueError("no recovery key")
    return raw[2:34]
