"""Somebody's client with encryption, built on mautrix and libolm: a program that is told by lines of JSON what to do.

It runs in the environment that has mautrix (`tests.servers.mautrix`); `tests.adapters.encrypting` drives it.
"""

import asyncio
import json
import logging
import sys
import traceback
from base64 import b64decode, b64encode
from typing import Any

from mautrix.api import HTTPAPI
from mautrix.client import Client
from mautrix.client.state_store.memory import MemoryStateStore
from mautrix.crypto import OlmMachine
from mautrix.crypto.attachments import decrypt_attachment, encrypt_attachment
from mautrix.crypto.store import MemoryCryptoStore
from mautrix.errors import SessionNotFound
from mautrix.types import EventType, Membership, RoomCreatePreset, RoomID, TOFUSigningKey, TrustState, UserID


class Rooms(MemoryStateStore):  # type: ignore[misc]
    """The rooms that the client is in."""

    async def find_shared_rooms(self, user: UserID) -> list[RoomID]:
        return [room for room, members in self.members.items() if user in members]


class Keys(MemoryCryptoStore):  # type: ignore[misc]
    """The keys that the client has; mautrix' own store in memory fails when a key is told twice."""

    async def put_cross_signing_key(self, user: UserID, usage: Any, key: Any) -> None:
        known = self._cross_signing_keys.setdefault(user, {})
        known[usage] = TOFUSigningKey(key=key, first=known[usage].first if usage in known else key)


class Person:
    """One person's client."""

    def __init__(self, url: str, user: str, device: str, token: str) -> None:
        store, rooms = Keys(user, "pickles"), Rooms()
        self.client = Client(
            mxid=user, device_id=device, api=HTTPAPI(base_url=url, token=token), sync_store=store, state_store=rooms
        )
        self.store = store
        self.client.crypto = self.machine = OlmMachine(self.client, store, rooms)
        self.client.add_event_handler(EventType.ROOM_ENCRYPTED, self._decrypt)
        self.client.add_event_handler(EventType.ROOM_MESSAGE, self._hear)
        self.heard: dict[str, list[dict[str, Any]]] = {}
        self.sessions: dict[str, str] = {}
        self.changed = asyncio.Condition()

    async def begin(self) -> str:
        await self.store.open()
        await self.machine.load()
        await self.machine.share_keys()
        self.client.start(None)
        return str(self.client.device_id)

    async def _decrypt(self, event: Any) -> None:
        if event.event_id in self.sessions or event.sender == self.client.mxid:
            return
        self.sessions[event.event_id] = event.content.session_id
        try:
            clear = await self.machine.decrypt_megolm_event(event)
        except SessionNotFound:
            if not await self.machine.wait_for_session(event.room_id, event.content.session_id, 30):
                raise
            clear = await self.machine.decrypt_megolm_event(event)
        content = clear.content.serialize()
        if event.content.relates_to:
            content["m.relates_to"] = event.content.relates_to.serialize()
        await self._keep(event, content)

    async def _hear(self, event: Any) -> None:
        # What was encrypted comes here, too, decrypted by mautrix itself.
        await asyncio.sleep(0)
        if event.event_id not in self.sessions and event.sender != self.client.mxid:
            await self._keep(event, event.content.serialize())

    async def _keep(self, event: Any, content: dict[str, Any]) -> None:
        async with self.changed:
            one = {"id": event.event_id, "sender": event.sender, "content": content}
            one["session"] = self.sessions.get(event.event_id, "")
            known = self.heard.setdefault(event.room_id, [])
            if one["id"] not in [other["id"] for other in known]:
                known.append(one)
            self.changed.notify_all()

    async def room(self, invite: list[str], direct: bool, **encryption: Any) -> str:  # noqa: FBT001 -- from JSON
        algorithm = {"algorithm": "m.megolm.v1.aes-sha2", **encryption}
        state = [{"type": "m.room.encryption", "state_key": "", "content": algorithm}]
        room = await self.client.create_room(
            preset=RoomCreatePreset.PRIVATE, invitees=invite, is_direct=direct, initial_state=state
        )
        return str(room)

    async def join(self, room: str) -> None:
        await self.client.join_room_by_id(RoomID(room))

    async def joined(self, room: str, user: str) -> None:
        """Wait until somebody is in a room."""
        while True:
            member = await self.client.state_store.get_member(room, user)
            if member is not None and member.membership == Membership.JOIN:
                return
            await asyncio.sleep(0.02)

    async def say(self, room: str, content: dict[str, Any]) -> str:
        return str(await self.client.send_message_event(RoomID(room), EventType.ROOM_MESSAGE, content))

    async def attach(self, room: str, name: str, data: str) -> str:
        sealed, file = encrypt_attachment(b64decode(data))
        file.url = await self.client.upload_media(sealed, mime_type="application/octet-stream")
        info = {"mimetype": "image/png", "size": len(b64decode(data))}
        return await self.say(room, {"msgtype": "m.image", "body": name, "file": file.serialize(), "info": info})

    async def fetch(self, file: dict[str, Any]) -> str:
        sealed = await self.client.download_media(file["url"])
        return b64encode(decrypt_attachment(sealed, file["key"]["k"], file["hashes"]["sha256"], file["iv"])).decode()

    def shown(self, room: str, thread: str = "") -> list[dict[str, Any]]:
        """What others have said, as it reads now."""
        seen: dict[str, dict[str, Any]] = {}
        for event in self.heard.get(room, []):
            content, relation = event["content"], event["content"].get("m.relates_to") or {}
            if relation.get("rel_type") == "m.replace":
                if (target := relation["event_id"]) in seen:
                    seen[target] = {**seen[target], "text": content["m.new_content"]["body"]}
            elif (relation.get("event_id", "") if relation.get("rel_type") == "m.thread" else "") == thread:
                seen[event["id"]] = {**event, "text": content["body"]}
        return list(seen.values())

    async def sees(self, room: str, count: int) -> list[dict[str, Any]]:
        """Wait until others have said so much."""
        async with self.changed:
            await self.changed.wait_for(lambda: len(self.shown(room)) >= count)
            return self.shown(room)

    async def has(self, room: str, ids: list[str], thread: str = "") -> list[dict[str, Any]]:
        """Wait until these messages of others are there."""
        async with self.changed:
            await self.changed.wait_for(lambda: {one["id"] for one in self.heard.get(room, [])}.issuperset(ids))
            return self.shown(room, thread)

    async def reads(self, room: str, texts: list[str], thread: str = "") -> list[dict[str, Any]]:
        """Wait until the last that others have said is this."""
        async with self.changed:
            await self.changed.wait_for(
                lambda: [one["text"] for one in self.shown(room, thread)][-len(texts) :] == texts
            )
            return self.shown(room, thread)

    async def trust(self, user: str) -> dict[str, str]:
        """How each device of a user is vouched for."""
        devices = (await self.machine._fetch_keys([UserID(user)], include_untracked=True))[user]
        return {id: TrustState(await self.machine.resolve_trust(one)).name for id, one in devices.items()}

    async def recovery(self) -> str:
        """Make keys by which this account vouches for its devices; returns their recovery key."""
        return str(await self.machine.generate_recovery_key())

    async def rotate(self, room: str) -> None:
        """Use a new key from now on."""
        await self.store.remove_outbound_group_session(RoomID(room))

    async def leave(self, room: str) -> None:
        await self.client.leave_room(RoomID(room))


async def main() -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    reader = asyncio.StreamReader(limit=2**24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    person: Person | None = None
    tasks = set()

    async def answer(asked: dict[str, Any]) -> None:
        try:
            told = {"result": await getattr(person, asked["do"])(**asked["with"])}
        except Exception:  # noqa: BLE001 -- the test is told
            told = {"error": traceback.format_exc()}
        print(json.dumps({"id": asked["id"], **told}), flush=True)  # noqa: T201 -- that is how it speaks

    while line := await reader.readline():
        asked = json.loads(line)
        if asked["do"] == "begin":
            person = Person(**asked.pop("with"))
            asked["with"] = {}
        task = asyncio.create_task(answer(asked))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


if __name__ == "__main__":
    asyncio.run(main())
