"""The keys of one device, kept in the account's locker: the store of nio's machine.

Law: what the machine changes waits in `changed` until it was kept; nothing that was made of it leaves, and no sync
token moves on, before that. The keys that the bot itself speaks with in rooms aren't kept at all: each process has its
own, so that no two, nor one that was killed and its successor, can ever use one step of a ratchet twice.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime

import msgspec
import vodozemac
from Crypto.Cipher import AES
from nio.crypto import (
    DeviceStore,
    GroupSessionStore,
    InboundGroupSession,
    OlmAccount,
    OlmDevice,
    OutgoingKeyRequest,
    Session,
    SessionStore,
)

from segue.core.contracts.lockers import Locker, Thing
from segue.core.values import Secret, Value
from segue.errors import Disconnected

_MOST_SESSIONS = 8
"""Sessions with one device that are kept: the oldest goes, so that nobody fills the locker by beginning new ones."""


class KeptAccount(Value, frozen=True):
    """The device's own keys."""

    pickle: str
    shared: bool
    """Whether the homeserver has their public halves."""


class KeptSession(Value, frozen=True):
    """What was agreed on with another device."""

    with_key: str
    """The other device's key."""
    pickle: str
    created: float
    used: float


class KeptRoomKey(Value, frozen=True):
    """A key that somebody's device speaks with in a room."""

    pickle: str
    ed25519: str
    sender_key: str
    owner: str
    """The user whose device it is."""


class Keyring:
    """Loads and saves keys for nio's machine; what is read is decrypted by the account's secret."""

    def __init__(self, device: str, secret: Secret, things: Mapping[str, Thing]) -> None:
        self.device = device
        self._passphrase = secret.reveal()
        self._at = f"keys/{device}/"
        self._things = {name: thing.value for name, thing in things.items()}
        """Values as they were when this began."""
        self._versions = {name: thing.version for name, thing in things.items()}
        self.changed: dict[str, str] = {}
        """Values that aren't kept yet, by name."""
        self.owners: dict[tuple[str, str], str] = {}
        """The users whose keys of rooms these are, by the sender's key and the session's id."""

    async def keep(self, locker: Locker) -> None:
        """Make what was changed durable; raises `Outdated` if another process changed it since it was read."""
        for name in [name for name in self.changed if name not in self._versions]:
            known = (await locker.read(name)).get(name)
            self._versions[name] = known.version if known else 0
            if known:
                # A key of a room that somebody sends once more: the first opens more than any later one.
                del self.changed[name]
        changes = {name: Thing(value, self._versions[name]) for name, value in self.changed.items()}
        if changes:
            await locker.keep(changes)
        for name, thing in changes.items():
            self._versions[name] = thing.version + 1 if thing.value else 0
            if self.changed[name] == thing.value:
                del self.changed[name]

    async def room_keys(self, locker: Locker, room: str, session: str) -> list[InboundGroupSession]:
        """The keys of a session in a room; usually there is one."""
        found = []
        for name, thing in (await locker.read(f"{self._at}room/{room}/{session}/")).items():
            kept = msgspec.json.decode(thing.value, type=KeptRoomKey)
            self._versions[name] = thing.version
            self.owners[kept.sender_key, session] = kept.owner
            pickle = kept.pickle.encode()
            found.append(InboundGroupSession.from_pickle(pickle, kept.ed25519, kept.sender_key, room, self._passphrase))
        return found

    def secret(self, name: str) -> bytes:
        """A secret that was kept; empty if there is none."""
        value = self._things.get(f"{self._at}{name}")
        if not value:
            return b""
        raw = bytes.fromhex(value)
        return AES.new(self._key, AES.MODE_GCM, nonce=raw[:16]).decrypt_and_verify(raw[32:], raw[16:32])

    def save_secret(self, name: str, content: bytes) -> None:
        """Keep a secret that isn't one of the machine's."""
        cipher = AES.new(self._key, AES.MODE_GCM)
        sealed, tag = cipher.encrypt_and_digest(content)
        self.changed[f"{self._at}{name}"] = (cipher.nonce + tag + sealed).hex()

    @property
    def _key(self) -> bytes:
        return hashlib.sha256(b"segue/matrix" + self._passphrase.encode()).digest()

    # What follows has the names by which nio's machine calls it.

    def load_account(self) -> OlmAccount | None:
        """The device's own keys; None if it has none yet."""
        value = self._things.get(f"{self._at}account")
        if not value:
            return None
        kept = msgspec.json.decode(value, type=KeptAccount)
        try:
            return OlmAccount.from_pickle(kept.pickle.encode(), self._passphrase, kept.shared)
        except (vodozemac.PickleException, vodozemac.LibolmPickleException) as error:
            fix = "Run `segue add matrix` again, with the password."
            raise Disconnected(f"the keys of {self.device} were kept with another token. {fix}") from error

    def save_account(self, account: OlmAccount) -> None:
        """Keep the device's own keys."""
        kept = KeptAccount(account.pickle(self._passphrase).decode(), account.shared)
        self.changed[f"{self._at}account"] = msgspec.json.encode(kept).decode()

    def load_sessions(self) -> SessionStore:
        """All that was agreed on with other devices."""
        store, at, sessions = SessionStore(), f"{self._at}olm/", dict[str, list[tuple[float, str, Session]]]()
        for name, value in self._things.items():
            if name.startswith(at):
                kept = msgspec.json.decode(value, type=KeptSession)
                # nio counts in local time, without a zone.
                created, used = datetime.fromtimestamp(kept.created), datetime.fromtimestamp(kept.used)  # noqa: DTZ006
                session = Session.from_pickle(kept.pickle.encode(), created, self._passphrase, used)
                sessions.setdefault(kept.with_key, []).append((kept.used, name, session))
        for curve_key, found in sessions.items():
            for n, (_, name, session) in enumerate(sorted(found, key=lambda one: one[0], reverse=True)):
                if n < _MOST_SESSIONS:
                    store.add(curve_key, session)
                else:
                    self.changed[name] = ""
        return store

    def save_session(self, curve_key: str, session: Session) -> None:
        """Keep what was agreed on with another device."""
        times = session.creation_time.timestamp(), session.use_time.timestamp()
        kept = KeptSession(curve_key, session.pickle(self._passphrase).decode(), *times)
        self.changed[f"{self._at}olm/{curve_key}/{session.id}"] = msgspec.json.encode(kept).decode()

    def load_inbound_group_sessions(self) -> GroupSessionStore:
        """None: the key of a room is looked up when it is needed."""
        return GroupSessionStore()

    def save_inbound_group_session(self, session: InboundGroupSession) -> None:
        """Keep a key of a room."""
        owner = self.owners.get((session.sender_key, session.id), "")
        pickle = session.pickle(self._passphrase).decode()
        kept = KeptRoomKey(pickle, session.ed25519, session.sender_key, owner)
        self.changed[f"{self._at}room/{session.room_id}/{session.id}/{session.sender_key}"] = msgspec.json.encode(
            kept
        ).decode()

    def drop(self, session: InboundGroupSession) -> None:
        """Don't keep a key of a room."""
        self.changed.pop(f"{self._at}room/{session.room_id}/{session.id}/{session.sender_key}", None)

    def load_device_keys(self) -> DeviceStore:
        """None: the homeserver is asked by each process, since it tells changes to one alone."""
        return DeviceStore()

    def save_device_keys(self, _: object) -> None:
        """Not needed."""

    def load_outgoing_key_requests(self) -> dict[str, OutgoingKeyRequest]:
        """None: nobody is asked for keys."""
        return {}

    def is_device_verified(self, _: OlmDevice) -> bool:
        """Nobody verifies devices for a bot."""
        return False

    def is_device_blacklisted(self, _: OlmDevice) -> bool:
        """Whoever is in a room reads what is said there, on all their devices."""
        return False

    def is_device_ignored(self, _: OlmDevice) -> bool:
        """Whether it is spoken to though nobody verified it."""
        return True
