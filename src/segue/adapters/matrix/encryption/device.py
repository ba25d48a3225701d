"""The bot's device: nio's machine, driven by our own calls of the homeserver, with its keys in the locker."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

from nio.crypto import Olm, OlmDevice
from nio.crypto.attachments import decrypt_attachment, encrypt_attachment
from nio.event_builders import DummyMessage
from nio.events import MegolmEvent, OlmEvent, RoomKeyEvent, ToDeviceEvent
from nio.exceptions import EncryptionError
from nio.responses import KeysClaimResponse, KeysQueryResponse

from segue.adapters.matrix.encryption import Opens
from segue.adapters.matrix.encryption.identity import Vouching
from segue.adapters.matrix.encryption.keyring import Keyring
from segue.adapters.matrix.events import SEALED, events_in, inside
from segue.adapters.matrix.homeserver import Homeserver, Json
from segue.adapters.shared.downloads import NotFetched
from segue.core.contracts.lockers import Locker
from segue.errors import Invalid, Outdated, SendError, SendLater, SendNever

T = TypeVar("T")
log = logging.getLogger(__name__)

_OLM, _MEGOLM, _SIGNED = "m.olm.v1.curve25519-aes-sha2", "m.megolm.v1.aes-sha2", "signed_curve25519"
_FEWEST = 25
"""One-time keys that the homeserver is to have; half of what it may."""
_AGAIN = 300.0
"""Seconds until somebody is asked again whose homeserver didn't answer, or who had no key to give."""
_TRIES = 3


class Device:
    """Encrypts and decrypts for one account; any number of processes may, at once."""

    def __init__(self, server: Homeserver, opens: Opens, locker: Locker) -> None:
        self._server = server
        self._opens = opens
        self._locker = locker
        self._one_at_a_time = asyncio.Lock()
        self._machine: Olm | None = None
        self._ring = Keyring("", server.token, {})
        self._asked: dict[str | tuple[str, str], float] = {}

    async def _open(self) -> Olm:
        """The machine, with the keys as they are in the locker."""
        if self._machine is None:
            _, device = await self._server.whoami()
            if not device:
                raise SendNever("The access token is no device's: log in with a password to get one that is.")
            things = await self._locker.read(f"keys/{device}/")
            known = {name: thing for name, thing in things.items() if not name.startswith(f"keys/{device}/room/")}
            self._ring = Keyring(device, self._server.token, known)
            self._machine = Olm(self._server.user, device, self._ring)
            self._asked.clear()
        return self._machine

    async def _keep(self) -> None:
        """Make all that the machine changed durable."""
        try:
            await self._ring.keep(self._locker)
        except Outdated:
            # Somebody else went on from the same keys: whatever was made of ours is worth nothing.
            self._machine = None
            raise

    async def _work(self, work: Callable[[Olm], Awaitable[T]]) -> T:
        """Do something with the machine, alone; anew if another process was faster with the same keys."""
        for _ in range(_TRIES):
            try:
                async with self._one_at_a_time:
                    return await work(await self._open())
            except Outdated:
                log.info("another process was faster with the keys of %s", self._server.user)
        raise SendLater("another process changes the keys all the time")

    async def begin(self) -> str:
        """Let the homeserver know the device's keys, and vouch for it; returns what is in the way of the latter."""
        self._machine = None
        return await self._work(self._begin)

    async def _begin(self, machine: Olm) -> str:
        if not machine.account.shared:
            await self._refuse_second(machine)
            await self._publish(machine, machine.share_keys())
        return await Vouching(self._server, self._opens, self._ring, self._keep).vouch()

    async def _refuse_second(self, machine: Olm) -> None:
        """Stop if the device has had other keys: nobody would trust new ones under its name."""
        me, device = machine.user_id, machine.device_id
        told = await self._server.call("POST", ("keys", "query"), {"device_keys": {me: [device]}})
        if inside(told, "device_keys", me, device):
            fix = "Run `segue add matrix` again, with the password, for a new one."
            raise SendNever(f"the keys of {me}'s device {device} are lost, or with another program. {fix}")

    async def heed(self, batch: Json) -> list[tuple[str, str]]:
        """Take what came for the device alone; returns the keys that came, each by its room and session."""
        return await self._work(partial(self._heed, batch))

    async def _heed(self, batch: Json, machine: Olm) -> list[tuple[str, str]]:
        lists = inside(batch, "device_lists")
        changed = {user for name in ("changed", "left") for user in _list(lists.get(name)) if isinstance(user, str)}
        machine.add_changed_users(changed & machine.tracked_users)
        for user in changed:
            self._asked.pop(user, None)
        came = [key for raw in events_in(batch, "to_device") if (key := await self._take(machine, raw))]
        await self._keep()
        try:
            await self._mend(machine)
            await self._fill(machine, batch)
        except SendError as error:
            log.warning("keys of %s can't be exchanged now: %s", self._server.user, error)
        return came

    async def _take(self, machine: Olm, raw: Any) -> tuple[str, str] | None:
        """Take one event that was sent to the device."""
        sender = inside(raw).get("sender")
        if inside(raw).get("type") != SEALED or not isinstance(sender, str):
            return None
        # If it can't be read, nio begins anew with the device, but only with one that it knows.
        await self._query(machine, [sender])
        try:
            event = ToDeviceEvent.parse_event(raw)
            got = machine.handle_to_device_event(event) if isinstance(event, OlmEvent) else None
        except (ValueError, KeyError, TypeError, AssertionError) as error:
            log.warning("%s sent the device something that can't be read: %s", sender, error)
            return None
        # The one-time key that opened a session is out of the account only now.
        self._ring.save_account(machine.account)
        if not isinstance(got, RoomKeyEvent):
            return None
        keys = machine.inbound_group_store[got.room_id][got.sender_key]
        if (key := keys.get(got.session_id)) is None:
            return None
        if await self._device(machine, got.sender, got.sender_key, key.ed25519) is None:
            log.warning("a key for %s came from a device that isn't one of %s's", got.room_id, got.sender)
            del keys[got.session_id]
            self._ring.drop(key)
            return None
        self._ring.owners[got.sender_key, got.session_id] = got.sender
        self._ring.save_inbound_group_session(key)
        return got.room_id, got.session_id

    async def _device(self, machine: Olm, user: str, sender_key: str, ed25519: str) -> OlmDevice | None:
        """The device of a user that has these keys."""
        for _ in range(2):
            for device in machine.device_store[user].values():
                if (device.curve25519, device.ed25519) == (sender_key, ed25519):
                    return device
            machine.users_for_key_query.add(user)
            self._asked.pop(user, None)
            await self._query(machine, [user])
        return None

    async def _mend(self, machine: Olm) -> None:
        """Begin anew with devices whose messages can't be read any more; of all that nio would send, only that."""
        if machine.wedged_devices:
            await self._claim(machine, machine.get_users_for_key_claiming())
            machine.wedged_devices.clear()
        dummies = [one for one in machine.outgoing_to_device_messages if isinstance(one, DummyMessage)]
        machine.outgoing_to_device_messages.clear()
        machine.key_re_requests_events.clear()
        await self._keep()
        for dummy in dummies:
            await self._post(dummy.as_dict()["messages"])

    async def _fill(self, machine: Olm, batch: Json) -> None:
        """See to it that others find keys to begin with."""
        counts, unused = inside(batch, "device_one_time_keys_count"), batch.get("device_unused_fallback_key_types")
        fresh = isinstance(unused, list) and _SIGNED not in unused
        count = counts.get(_SIGNED, 0)
        if not isinstance(count, int) or not (fresh or (counts and count < _FEWEST)):
            return
        machine.uploaded_key_count = min(max(0, count), machine.account.max_one_time_keys - 1)
        await self._publish(machine, machine.share_keys(), fresh=fresh)

    async def _publish(self, machine: Olm, keys: Json, *, fresh: bool = True) -> None:
        own = machine.account._account  # noqa: SLF001 -- nio has no words for fallback keys
        if fresh:
            own.generate_fallback_key()
        for id, key in own.fallback_key.items():
            signed = {"key": key.to_base64(), "fallback": True}
            signature = {machine.user_id: {f"ed25519:{machine.device_id}": machine.sign_json(signed)}}
            keys["fallback_keys"] = {f"{_SIGNED}:{id}": signed | {"signatures": signature}}
        self._ring.save_account(machine.account)
        await self._keep()
        await self._server.call("POST", ("keys", "upload"), keys)
        machine.account.shared = True
        machine.mark_keys_as_published()
        self._ring.save_account(machine.account)
        await self._keep()

    def doubt(self) -> None:
        """Ask for everybody's devices again: what changed meanwhile was told to another process."""
        self._asked.clear()
        if self._machine is not None:
            self._machine.tracked_users.clear()

    async def sealed(self, room: str, users: list[str], rotation: Json, content: Json) -> Json:
        """A message as the devices of these users can read it, and nobody else."""

        async def seal(machine: Olm) -> Json:
            if not machine.account.shared:
                raise SendLater("the homeserver doesn't know the device's keys yet")
            await self._share(machine, room, users, rotation)
            words = {key: value for key, value in content.items() if key != "m.relates_to"}
            session = machine.outbound_group_sessions[room]
            # The machine's own way writes most letters as \u0431: a long text would be too large for an event.
            said = json.dumps({"type": "m.room.message", "content": words, "room_id": room}, ensure_ascii=False)
            made: Json = {
                "algorithm": _MEGOLM,
                "sender_key": machine.account.identity_keys["curve25519"],
                "ciphertext": session.encrypt(said),
                "session_id": session.id,
                "device_id": machine.device_id,
            }
            # How it stands to other events is for the homeserver, too.
            return made | {key: content[key] for key in ("m.relates_to",) if key in content}

        return await self._work(seal)

    async def _share(self, machine: Olm, room: str, users: list[str], rotation: Json) -> None:
        """Give the devices of a room the key that the next message is encrypted with."""
        if rotation.get("algorithm", _MEGOLM) != _MEGOLM:
            raise SendNever(f"{room} is encrypted in a way that nobody knows.")
        await self._query(machine, users)
        await self._claim(machine, {user: ids for user, ids in machine.get_missing_sessions(users).items() if ids})
        wanted = {(d.user_id, d.id) for user in users for d in self._reachable(machine, user)}
        session = machine.outbound_group_sessions.get(room)
        if session is None or session.expired or session.users_shared_with - wanted:
            # Whoever left, or logged a device out, reads nothing of what is said from now on.
            machine.create_outbound_group_session(room)
            session = machine.outbound_group_sessions[room]
            session.max_messages = _at_most(rotation.get("rotation_period_msgs"), 100)
            session.max_age = timedelta(milliseconds=_at_most(rotation.get("rotation_period_ms"), 604_800_000))
        if session.shared and wanted <= session.users_shared_with:
            return
        session.shared = False
        for devices, body in machine.share_group_session_parallel(room, users):
            await self._keep()
            await self._post(body["messages"])
            session.users_shared_with |= devices
        await self._keep()
        session.mark_as_shared()

    def _reachable(self, machine: Olm, user: str) -> Iterable[OlmDevice]:
        """The devices of a user to which something can be sent."""
        for device in machine.device_store.active_user_devices(user):
            if machine.session_store.get(device.curve25519) and device.id != machine.device_id:
                yield device

    async def _query(self, machine: Olm, users: Iterable[str]) -> None:
        """Ask for the devices of users that aren't known, or have changed."""
        stale = [user for user in users if user not in machine.tracked_users or user in machine.users_for_key_query]
        if not (asked := [user for user in stale if self._due(user)]):
            return
        told = await self._server.call("POST", ("keys", "query"), {"device_keys": {user: [] for user in asked}})
        for user in asked:
            found = inside(told, "device_keys").get(user)
            if not isinstance(found, dict):
                continue  # their homeserver doesn't answer
            sound = {id: keys for id, keys in found.items() if self._is_sound(machine, user, id, keys)}
            response = KeysQueryResponse.from_dict({"device_keys": {user: sound}, "failures": {}})
            if isinstance(response, KeysQueryResponse):
                machine.handle_response(response)

    def _is_sound(self, machine: Olm, user: str, id: str, keys: Any) -> bool:
        """Whether a device's keys are its own: one that has nonsense for keys must not stop the others."""
        try:
            right = keys["user_id"] == user and keys["device_id"] == id and f"curve25519:{id}" in keys["keys"]
            return right and machine.verify_json(keys, keys["keys"][f"ed25519:{id}"], user, id) is True
        except (ValueError, KeyError, TypeError):
            return False

    async def _claim(self, machine: Olm, missing: dict[str, list[str]]) -> None:
        """Begin a session with devices that there is none with."""
        asked = {user: {id: _SIGNED for id in ids if self._due((user, id))} for user, ids in missing.items()}
        asked = {user: ids for user, ids in asked.items() if ids}
        if not asked:
            return
        told = await self._server.call("POST", ("keys", "claim"), {"one_time_keys": asked})
        for user, devices in inside(told, "one_time_keys").items():
            for id, key in inside(devices).items():
                try:
                    response = KeysClaimResponse.from_dict({"one_time_keys": {user: {id: key}}, "failures": {}})
                    machine.handle_response(response)
                except (ValueError, KeyError, TypeError, StopIteration) as error:
                    log.warning("the one-time key of %s's device %s can't be used: %s", user, id, error)
        await self._keep()

    def _due(self, what: str | tuple[str, str]) -> bool:
        now = time.monotonic()
        if now - self._asked.get(what, -_AGAIN) < _AGAIN:
            return False
        self._asked[what] = now
        return True

    async def _post(self, messages: Json) -> None:
        await self._server.call("PUT", ("sendToDevice", SEALED, uuid4().hex), {"messages": messages})

    async def opened(self, room: str, raw: Json) -> Json | None:
        """An event in the clear; None if its key isn't there; raises `Invalid` if it is no message of its sender's."""
        return await self._work(partial(self._opened, room, raw))

    async def _opened(self, room: str, raw: Json, machine: Olm) -> Json | None:
        sealed, sender = inside(raw, "content"), raw["sender"]
        session = str(sealed.get("session_id"))
        keys = [one[session] for one in machine.inbound_group_store[room].values() if session in one]
        if not keys:
            keys = await self._ring.room_keys(self._locker, room, session)
            for key in keys:
                machine.inbound_group_store.add(key)
        owners = self._ring.owners
        own = [key for key in keys if owners.get((key.sender_key, session), self._server.user) == sender]
        if keys and not own:
            raise Invalid("event", f"its key isn't {sender}'s", "Nobody can have sent it so.")
        if not own:
            return None
        # Newer clients needn't name the sender's keys.
        named = {"device_id": "", **sealed, "sender_key": own[0].sender_key}
        event = MegolmEvent.from_dict({**raw, "content": named, "room_id": room})
        if not isinstance(event, MegolmEvent):
            raise Invalid("event", "it isn't encrypted in a way that is known", "See the client that sent it.")
        try:
            clear: Json = machine.decrypt_megolm_event(event, room).source
        except (EncryptionError, ValueError) as error:
            raise Invalid("event", f"it can't be decrypted ({error})", "Let it be sent again.") from error
        content = inside(clear, "content")
        if relation := sealed.get("m.relates_to"):
            content["m.relates_to"] = relation
        return {**raw, "type": clear.get("type"), "content": content}

    async def closed_file(self, content: bytes) -> tuple[bytes, Json]:
        """The bytes of a file that is to be put into the media store, and what opens them."""
        return await asyncio.to_thread(encrypt_attachment, content)

    async def opened_file(self, content: bytes, key: Json) -> bytes:
        """The bytes of a file; raises `NotFetched` if they aren't what the key is for."""
        try:
            secret, digest, iv = inside(key, "key").get("k"), inside(key, "hashes").get("sha256"), key.get("iv")
            found: bytes = await asyncio.to_thread(decrypt_attachment, content, secret, digest, iv)
        except (EncryptionError, ValueError, TypeError, AttributeError) as error:
            raise NotFetched("It isn't what its key is for.") from error
        return found


def _at_most(asked: object, most: int) -> int:
    return min(max(1, asked), most) if isinstance(asked, int) else most


def _list(told: object) -> list[Any]:
    return told if isinstance(told, list) else []
