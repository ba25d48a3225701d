"""The bot's device: nio's machine, driven by our own calls of the homeserver, with its keys in the locker."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import uuid4

from nio.crypto import GroupSessionStore, Olm
from nio.crypto.attachments import decrypt_attachment, encrypt_attachment
from nio.events import MegolmEvent, OlmEvent, RoomKeyEvent, ToDeviceEvent
from nio.exceptions import EncryptionError
from nio.responses import KeysClaimResponse, KeysQueryResponse

from segue.adapters.matrix.encryption.identity import vouch
from segue.adapters.matrix.encryption.keyring import Keyring
from segue.adapters.matrix.events import SEALED, events_in
from segue.adapters.matrix.homeserver import Homeserver, Json
from segue.adapters.shared.decoding import inside, listed
from segue.adapters.shared.downloads import NotFetched
from segue.errors import Invalid, Outdated, SendError, SendLater, SendNever

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger(__name__)

_MEGOLM, _SIGNED = "m.megolm.v1.aes-sha2", "signed_curve25519"
_FEWEST = 25
"""One-time keys that the homeserver is to have; half of what it may."""
_AGAIN = 300.0
"""Seconds until somebody is asked again whose homeserver didn't answer, or who had no key to give."""
_LONGEST = 255
"""Characters of a room's id: whoever sends a key may call its room what they like, also what no database keeps."""
_NONSENSE = (ValueError, KeyError, TypeError, AttributeError, AssertionError, StopIteration, RecursionError)
"""Errors that nio comes to when what others sent has another shape than it should."""


def alone(
    work: "Callable[Concatenate[Device, Olm, P], Awaitable[T]]",
) -> "Callable[Concatenate[Device, P], Awaitable[T]]":
    """Work with the machine, one at a time; done anew if another process was faster with the same keys."""

    @wraps(work)
    async def done(device: "Device", /, *args: P.args, **named: P.kwargs) -> T:
        for _ in range(3):
            async with device.one_at_a_time:
                try:
                    return await work(device, await device.open(), *args, **named)
                except Outdated:
                    device.machine = None  # whatever was made of these keys is worth nothing
        raise SendLater("another process changes the keys all the time")

    return done


class Device:
    """Encrypts and decrypts for one account; any number of processes may, at once."""

    def __init__(self, server: Homeserver, ring: Keyring) -> None:
        self._server = server
        self.ring = ring
        self._asked: dict[tuple[str, str], float] = {}
        self.one_at_a_time = asyncio.Lock()
        self.machine: Olm | None = None

    async def open(self) -> Olm:
        if self.machine is None:
            await self.ring.open()
            self.machine = Olm(self._server.user, self.ring.device, self.ring)
            self._asked.clear()
        self.machine.inbound_group_store = GroupSessionStore()  # keys of rooms are read when they are needed
        return self.machine

    @alone
    async def begin(self, machine: Olm) -> str:
        """Let the homeserver know the device's keys, and vouch for it; returns what is in the way of the latter."""
        me, id, own = machine.user_id, machine.device_id, machine.account.identity_keys["ed25519"]
        told = await self._server.call("POST", ("keys", "query"), {"device_keys": {me: []}})
        device = inside(told, "device_keys", me, id)
        if inside(device, "keys").get(f"ed25519:{id}", own) != own:  # nobody would trust new keys under its name
            fix = "Take its table out of segue.toml and run `segue add matrix` again, with the password, for a new one."
            raise SendNever(f"the keys of {me}'s device {id} are lost, or with another program. {fix}")
        if not machine.account.shared:
            device = (await self._publish(machine, fresh=True))["device_keys"]
        return await vouch(self._server, self.ring, told, device)

    @alone
    async def heed(self, machine: Olm, batch: Json) -> list[tuple[str, str]]:
        """Take what came for the device alone; returns the keys that came, each by its room and session."""
        lists = inside(batch, "device_lists")
        for user in (*listed(lists.get("changed")), *listed(lists.get("left"))):
            self._doubt(machine, str(user))
        came = [key for raw in events_in(batch, "to_device") if (key := await self._take(machine, raw))]
        await self.ring.keep()
        try:
            if machine.wedged_devices:  # with which it begins anew, since their messages can't be read any more
                await self._claim(machine, machine.get_users_for_key_claiming())
            while machine.outgoing_to_device_messages:
                await self._post(machine.outgoing_to_device_messages[0].as_dict()["messages"])
                del machine.outgoing_to_device_messages[0]
            await self._fill(machine, batch)
        except (SendError, Outdated) as error:  # what came was kept, and isn't to be read twice
            log.warning("keys of %s can't be exchanged now: %s", self._server.user, error)
        return came

    async def _take(self, machine: Olm, raw: Any) -> tuple[str, str] | None:
        """Take one event that was sent to the device; returns the room and the session of a key that was in it."""
        try:
            if not isinstance(event := ToDeviceEvent.parse_event(raw), OlmEvent):
                return None
            await self._query(machine, [event.sender])  # nio begins anew with devices that it knows alone
            got = machine.handle_to_device_event(event)
        except _NONSENSE as error:
            log.warning("something that was sent to the device can't be read: %s", error)
            return None
        self.ring.save_account(machine.account)  # the one-time key that opened a session is out of it only now
        if not isinstance(got, RoomKeyEvent) or len(got.room_id) > _LONGEST or not got.room_id.isprintable():
            return None
        key = machine.inbound_group_store.get(got.room_id, got.sender_key, got.session_id)
        for _ in range(2 if key else 0):
            device = machine.device_store.device_from_sender_key(got.sender, got.sender_key)
            if device and device.ed25519 == key.ed25519:
                await self.ring.save_room_key(key, got.sender)
                return got.room_id, got.session_id
            self._doubt(machine, got.sender)
            await self._query(machine, [got.sender])
        log.warning("a key for %s is none, or came from a device that isn't one of %s's", got.room_id, got.sender)
        return None

    async def _fill(self, machine: Olm, batch: Json) -> None:
        counts, unused = inside(batch, "device_one_time_keys_count"), batch.get("device_unused_fallback_key_types")
        fresh = isinstance(unused, list) and _SIGNED not in unused
        if isinstance(count := counts.get(_SIGNED, 0), int) and (fresh or (counts and count < _FEWEST)):
            machine.uploaded_key_count = min(max(0, count), machine.account.max_one_time_keys - 1)
            await self._publish(machine, fresh=fresh)

    async def _publish(self, machine: Olm, *, fresh: bool) -> Json:
        """Give the homeserver new keys, which are durable before it hears of them."""
        keys: Json = machine.share_keys()
        own = machine.account._account  # noqa: SLF001 -- nio has no words for fallback keys
        if fresh:
            own.generate_fallback_key()
        for id, key in own.fallback_key.items():
            signed = {"key": key.to_base64(), "fallback": True}
            signature = {machine.user_id: {f"ed25519:{machine.device_id}": machine.sign_json(signed)}}
            keys["fallback_keys"] = {f"{_SIGNED}:{id}": signed | {"signatures": signature}}
        self.ring.save_account(machine.account)
        await self.ring.keep()
        await self._server.call("POST", ("keys", "upload"), keys)
        machine.account.shared = True
        machine.mark_keys_as_published()
        self.ring.save_account(machine.account)
        await self.ring.keep()
        return keys

    def forget(self) -> None:
        """Ask for everybody's devices again: what changed meanwhile was told to another process."""
        self._asked.clear()
        if self.machine is not None:
            self.machine.tracked_users.clear()

    @alone
    async def sealed(self, machine: Olm, room: str, users: list[str], rotation: Json, content: Json) -> Json:
        """A message as the devices of these users can read it, and nobody else."""
        if not machine.account.shared:
            self.machine = None  # another process may have told them by then
            raise SendLater("the homeserver doesn't know the device's keys yet")
        await self._share(machine, room, users, rotation)
        words, session = dict(content), machine.outbound_group_sessions[room]
        # How it stands to other events is for the homeserver, too.
        relation = {"m.relates_to": words.pop("m.relates_to")} if "m.relates_to" in words else {}
        # The machine's own way writes most letters as \u0431: a long text would be too large for an event.
        said = json.dumps({"type": "m.room.message", "content": words, "room_id": room}, ensure_ascii=False)
        return {
            "algorithm": _MEGOLM,
            "sender_key": machine.account.identity_keys["curve25519"],
            "ciphertext": session.encrypt(said),
            "session_id": session.id,
            "device_id": machine.device_id,
            **relation,
        }

    async def _share(self, machine: Olm, room: str, users: list[str], rotation: Json) -> None:
        """Give the key that the bot speaks with in a room to every device there; make a new one where it must."""
        if rotation.get("algorithm", _MEGOLM) != _MEGOLM:
            raise SendNever(f"{room} is encrypted in a way that nobody knows.")
        await self._query(machine, users)
        await self._claim(machine, machine.get_missing_sessions(users))
        devices = [one for user in users for one in machine.device_store.active_user_devices(user)]
        reached = {(one.user_id, one.id) for one in devices if machine.session_store.get(one.curve25519)}
        session = machine.outbound_group_sessions.get(room)
        if not session or session.expired or session.users_shared_with - reached:
            machine.create_outbound_group_session(room)  # who left, or logged a device out, reads no more
            session = machine.outbound_group_sessions[room]
            session.max_messages = _at_most(rotation.get("rotation_period_msgs"), 100)
            session.max_age = timedelta(milliseconds=_at_most(rotation.get("rotation_period_ms"), 604_800_000))
        session.shared = False  # so that nio gives it to those alone who haven't got it
        for given, body in machine.share_group_session_parallel(room, users):
            await self.ring.keep()
            await self._post(body["messages"])
            session.users_shared_with |= given
        session.mark_as_shared()

    async def _query(self, machine: Olm, users: Iterable[str]) -> None:
        """Ask for the devices of users that aren't known, or have changed; not everybody's homeserver answers."""
        stale = [user for user in users if user not in machine.tracked_users or user in machine.users_for_key_query]
        told = await self._asked_for("query", "device_keys", {user: [] for user in stale if self._is_due(user)})
        for user, devices in told.items():
            sound = {id: keys for id, keys in inside(devices).items() if _is_sound(machine, user, id, keys)}
            for id in machine.device_store[user].keys() - sound.keys():
                del machine.device_store[user][id]  # nio knows no device that comes back
            machine.handle_response(KeysQueryResponse({user: sound}, {}))

    async def _claim(self, machine: Olm, missing: dict[str, list[str]]) -> None:
        due = {user: {id: _SIGNED for id in ids if self._is_due(user, id)} for user, ids in missing.items()}
        told = await self._asked_for("claim", "one_time_keys", {user: ids for user, ids in due.items() if ids})
        for user, devices in told.items():
            for id, key in inside(devices).items():
                try:
                    machine.handle_response(KeysClaimResponse({user: {id: key}}, {}))
                except _NONSENSE as error:
                    log.warning("the one-time key of %s's device %s can't be used: %s", user, id, error)
        await self.ring.keep()

    async def _asked_for(self, verb: str, name: str, asked: dict[str, Any]) -> Json:
        told = inside(await self._server.call("POST", ("keys", verb), {name: asked}), name) if asked else {}
        for user, ids in asked.items():  # if the call failed, nobody was asked
            self._asked |= {(user, id): time.monotonic() for id in ids or [""]}
        return told

    def _is_due(self, user: str, id: str = "") -> bool:
        return time.monotonic() - self._asked.get((user, id), -_AGAIN) >= _AGAIN

    def _doubt(self, machine: Olm, user: str) -> None:
        machine.users_for_key_query.add(user)
        self._asked.pop((user, ""), None)

    async def _post(self, messages: Json) -> None:
        await self._server.call("PUT", ("sendToDevice", SEALED, uuid4().hex), {"messages": messages})

    @alone
    async def opened(self, machine: Olm, room: str, raw: Json) -> Json | None:
        """An event in the clear; None if its key isn't there; raises `Invalid` if it is no message of its sender's."""
        sealed, sender = inside(raw, "content"), raw["sender"]
        if not (keys := await self.ring.room_keys(room, str(sealed.get("session_id")))):
            return None
        if (key := keys.get(sender)) is None:
            raise Invalid("event", f"its key isn't {sender}'s", "Nobody can have sent it so.")
        machine.inbound_group_store.add(key)
        named = {"device_id": "", **sealed, "sender_key": key.sender_key}  # which newer clients needn't name
        event = MegolmEvent.from_dict({**raw, "content": named, "room_id": room})
        if not isinstance(event, MegolmEvent):
            raise Invalid("event", "it isn't encrypted in a way that is known", "See the client that sent it.")
        try:
            clear: Json = machine.decrypt_megolm_event(event, room).source
        except (EncryptionError, ValueError) as error:
            raise Invalid("event", f"it can't be decrypted ({error})", "Let it be sent again.") from error
        return {**raw, "type": clear.get("type"), "content": inside(clear, "content")}

    async def closed_file(self, content: bytes) -> tuple[bytes, Json]:
        return await asyncio.to_thread(encrypt_attachment, content)

    async def opened_file(self, key: Json, content: bytes) -> bytes:
        """The bytes of a file; raises `NotFetched` if they aren't what the key is for."""
        secret, digest, iv = inside(key, "key").get("k"), inside(key, "hashes").get("sha256"), key.get("iv")
        try:
            return bytes(await asyncio.to_thread(decrypt_attachment, content, secret, digest, iv))
        except (EncryptionError, *_NONSENSE) as error:
            raise NotFetched("It isn't what its key is for.") from error


def _is_sound(machine: Olm, user: str, id: str, keys: Any) -> bool:
    """Whether a device's keys are its own; one with nonsense for keys hides none of the others."""
    try:
        keys.pop("unsigned", None)
        named = (keys["user_id"], keys["device_id"], type(keys["keys"][f"curve25519:{id}"])) == (user, id, str)
        return named and machine.verify_json(keys, keys["keys"][f"ed25519:{id}"], user, id) is True
    except _NONSENSE:
        return False


def _at_most(asked: object, most: int) -> int:
    return min(max(1, asked), most) if isinstance(asked, int) else most
