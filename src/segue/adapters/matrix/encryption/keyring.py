"""The keys of one device, kept in the account's locker: the store of nio's machine.

Law: what the machine changes waits in `changed` until it was kept; nothing that was made of it leaves, and no sync
token moves on, before that. The keys that the bot itself speaks with in rooms aren't kept at all: each process has its
own, so that no two, nor one that was killed and its successor, can ever use one step of a ratchet twice.
"""

import hashlib
from datetime import datetime
from secrets import token_bytes
from typing import Any

import msgspec
import vodozemac
from Crypto.Cipher import AES
from nio.crypto import DeviceStore, GroupSessionStore, InboundGroupSession, OlmAccount, Session, SessionStore

from segue.adapters.shared.drawers import Drawer
from segue.core.contracts.lockers import Locker, Thing
from segue.core.values import Secret
from segue.errors import Disconnected

_MOST_SESSIONS = 8
"""Sessions with one device that are kept: the oldest goes, so that nobody fills the locker by beginning new ones."""


class Keyring:
    """Loads and saves keys for nio's machine; what is read is decrypted by the account's secret."""

    def __init__(self, locker: Locker, device: str, secret: Secret) -> None:
        self.device = device
        self._locker = locker
        self._drawer = Drawer(locker, f"keys/{device}/")
        self._passphrase = secret.reveal()
        self._kept: dict[str, Any] = {}
        self.changed: dict[str, Any] = {}

    async def open(self) -> None:
        """Read all keys but those of rooms, which are looked up when they are needed."""
        self.changed, self._kept = {}, await self._drawer.read("account") | await self._drawer.read("olm/")

    async def keep(self) -> None:
        """Make what was changed durable; raises `Outdated` if another process changed it since it was read."""
        await self._drawer.keep(self.changed)
        self.changed.clear()

    async def room_keys(self, room: str, session: str) -> dict[str, InboundGroupSession]:
        """The keys of a session in a room, by the users whose devices speak with them; usually there is one."""
        found = {}
        for kept in (await self._drawer.read(f"room/{room}/{session}/")).values():
            about = kept["pickle"].encode(), kept["ed25519"], kept["sender_key"], room
            found[kept["owner"]] = InboundGroupSession.from_pickle(*about, self._passphrase)
        return found

    async def save_room_key(self, key: InboundGroupSession, owner: str) -> None:
        """Keep a key of a room; of one that somebody sends again, the first opens more than any later one."""
        name = f"room/{key.room_id}/{key.id}/{key.sender_key}"
        if name not in self.changed and not await self._drawer.read(name):
            about = {"ed25519": key.ed25519, "sender_key": key.sender_key, "owner": owner}
            self.changed[name] = {"pickle": key.pickle(self._passphrase).decode(), **about}

    async def identity(self) -> dict[str, bytes]:
        """The seeds of the account's keys, by their roles, which are made when they are first asked for."""
        name, key = f"keys/{self.device}/identity", hashlib.sha256(f"segue/matrix{self._passphrase}".encode()).digest()
        if kept := (await self._locker.read(name)).get(name):
            raw = bytes.fromhex(kept.value)
            opened = AES.new(key, AES.MODE_GCM, nonce=raw[:16]).decrypt_and_verify(raw[32:], raw[16:32])
            return msgspec.json.decode(opened, type=dict[str, bytes])
        seeds, cipher = {"master": token_bytes(32), "self_signing": token_bytes(32)}, AES.new(key, AES.MODE_GCM)
        sealed, tag = cipher.encrypt_and_digest(msgspec.json.encode(seeds))
        await self._locker.keep({name: Thing((cipher.nonce + tag + sealed).hex(), 0)})
        return seeds

    # What follows has the names by which nio's machine calls it.

    def load_account(self) -> OlmAccount | None:
        if (kept := self._kept.get("account")) is None:
            return None
        try:
            return OlmAccount.from_pickle(kept["pickle"].encode(), self._passphrase, kept["shared"])
        except (vodozemac.PickleException, vodozemac.LibolmPickleException) as error:
            fix = "Take its table out of segue.toml and run `segue add matrix` again, with the password."
            raise Disconnected(f"the keys of {self.device} were kept with another token. {fix}") from error

    def save_account(self, account: OlmAccount) -> None:
        self.changed["account"] = {"pickle": account.pickle(self._passphrase).decode(), "shared": account.shared}

    def load_sessions(self) -> SessionStore:
        store, found = SessionStore(), [(name, kept) for name, kept in self._kept.items() if name.startswith("olm/")]
        for name, kept in sorted(found, key=lambda one: one[1]["used"], reverse=True):
            if len(store[kept["with_key"]]) >= _MOST_SESSIONS:
                self.changed[name] = None
                continue
            created, used = (datetime.fromtimestamp(kept[when]) for when in ("created", "used"))  # noqa: DTZ006 -- as nio
            session = Session.from_pickle(kept["pickle"].encode(), created, self._passphrase, used)
            store.add(kept["with_key"], session)
        return store

    def save_session(self, curve_key: str, session: Session) -> None:
        times = {"created": session.creation_time.timestamp(), "used": session.use_time.timestamp()}
        kept = {"with_key": curve_key, "pickle": session.pickle(self._passphrase).decode(), **times}
        self.changed[f"olm/{curve_key}/{session.id}"] = kept

    # Each process asks for devices, since the homeserver tells their changes to one alone; nobody is asked for keys.
    load_inbound_group_sessions, load_device_keys, load_outgoing_key_requests = GroupSessionStore, DeviceStore, dict

    def save_inbound_group_session(self, _: object) -> None:
        """Keep nothing yet: whose key it is has to be seen first."""

    save_device_keys = save_inbound_group_session

    # Nobody verifies devices for a bot, or shuts them out: whoever is in a room reads what is said there.
    def is_device_verified(self, _: object) -> bool:
        return False

    is_device_blacklisted = is_device_verified

    def is_device_ignored(self, _: object) -> bool:
        return True
