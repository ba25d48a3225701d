"""People on a real homeserver, as their own clients would speak for them; and the bot among them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote
from uuid import uuid4

import httpx2

from segue.adapters.matrix import Matrix, MatrixAccount
from segue.core.contracts.adapters import Accept, Adapter, Files
from segue.core.contracts.lockers import Remembers
from segue.core.lanes import Address, Kind
from segue.core.values import Secret
from segue.runtime.files.folder import Folder
from segue.testing import Chest, Shelf
from segue.testing.harness import Bookmark, Given, Seen, living
from tests.clients import http_client
from tests.servers.homeserver import NAME, Synapse

Json = dict[str, Any]
_PATIENCE = 90.0
"""Seconds until a test is told that something never came; no test that passes waits for them."""


class User:
    """Somebody with an account on the homeserver."""

    def __init__(self, client: httpx2.AsyncClient, id: str, token: str) -> None:
        self.client = client
        self.id = id
        self.token = token

    @classmethod
    async def register(cls, server: Synapse, name: str) -> Self:
        """A new account, shown by this name."""
        client = http_client(base_url=f"{server.url}/_matrix/client/v3", timeout=30.0)
        body = {"username": f"u{uuid4().hex[:12]}", "password": "p", "auth": {"type": "m.login.dummy"}}
        user = cls(client, "", "")
        answer = await user.call("POST", "/register", body)
        user.id, user.token = answer["user_id"], answer["access_token"]
        client.headers["Authorization"] = f"Bearer {user.token}"
        await user.call("PUT", f"/profile/{user.id}/displayname", {"displayname": name})
        return user

    async def call(self, method: str, path: str, body: Json | None = None, query: Json | None = None) -> Json:
        response = await self.client.request(method, path, json={} if body is None else body, params=query or {})
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text}"
        answer: Json = response.json()
        return answer

    async def make_room(self, *invited: User, **more: Any) -> str:
        """A new room with these people in it or invited."""
        body = {"preset": "private_chat", "invite": [user.id for user in invited], **more}
        return str((await self.call("POST", "/createRoom", body))["room_id"])

    async def join(self, room: str) -> None:
        await self.call("POST", f"/rooms/{_quoted(room)}/join")

    async def put(self, room: str, content: Json, kind: str = "m.room.message") -> str:
        """Send an event as it is."""
        answer = await self.call("PUT", f"/rooms/{_quoted(room)}/send/{kind}/{uuid4().hex}", content)
        return str(answer["event_id"])

    async def says(self, room: str, text: str, thread: str = "", more: Json | None = None) -> str:
        content: Json = {"msgtype": "m.text", "body": text, "m.mentions": {}, **(more or {})}
        if thread:
            fallback = {"is_falling_back": True, "m.in_reply_to": {"event_id": thread}}
            content["m.relates_to"] = {"rel_type": "m.thread", "event_id": thread, **fallback}
        return await self.put(room, content)

    async def replies(self, room: str, to: str, text: str) -> str:
        return await self.says(room, text, more={"m.relates_to": {"m.in_reply_to": {"event_id": to}}})

    async def uploads(self, content: bytes, media: str) -> str:
        """The address of a file that they put on the homeserver."""
        up = self.client.base_url.copy_with(path="/_matrix/media/v3/upload")
        answer = await self.client.post(up, content=content, headers={"Content-Type": media})
        return str(answer.json()["content_uri"])

    async def edits(self, room: str, event: str, text: str) -> str:
        new = {"msgtype": "m.text", "body": text, "m.mentions": {}}
        return await self.put(
            room,
            {
                **new,
                "body": f"* {text}",
                "m.new_content": new,
                "m.relates_to": {"rel_type": "m.replace", "event_id": event},
            },
        )

    async def timeline(self, room: str, kind: str = "m.room.message") -> list[Json]:
        """The messages of a room, the oldest first."""
        found: list[Json] = []
        start = ""
        chosen = json.dumps({"types": [kind]})
        while True:
            query = {"dir": "f", "limit": "500", "filter": chosen} | ({"from": start} if start else {})
            page = await self.call("GET", f"/rooms/{_quoted(room)}/messages", query=query)
            found += page["chunk"]
            start = page.get("end", "")
            if not start:
                return found

    async def sees(self, room: str, by: str, thread: str = "") -> list[Seen]:
        """What somebody has said in a room or one of its threads, as it reads now, the oldest first."""
        seen: dict[str, Seen] = {}
        for event in await self.timeline(room):
            content = event["content"]
            relation = content.get("m.relates_to", {})
            if event["sender"] != by or not content:
                continue
            if relation.get("rel_type") == "m.replace":
                if (target := relation["event_id"]) in seen:
                    seen[target] = Seen(target, content["m.new_content"]["body"])
            elif (relation["event_id"] if relation.get("rel_type") == "m.thread" else "") == thread:
                seen[event["event_id"]] = Seen(event["event_id"], content["body"])
        return list(seen.values())

    async def reads(self, room: str, by: str, *texts: str, thread: str = "") -> list[Seen]:
        """Wait until somebody has said just this in a room, the last of it whole."""
        since = ""
        async with asyncio.timeout(_PATIENCE):
            while True:
                query = {"timeout": "10000" if since else "0"} | ({"since": since} if since else {})
                since = str((await self.call("GET", "/sync", query=query))["next_batch"])
                seen = await self.sees(room, by, thread)
                if [message.text for message in seen][-len(texts) :] == list(texts):
                    return seen


class MatrixHarness:
    """Lets the contracts speak on a homeserver."""

    kinds = (Kind.DM, Kind.GROUP)

    def __init__(self, server: Synapse, folder: Path, bot: User, people: dict[str, User]) -> None:
        self.server = server
        self.folder = folder
        self.bot = bot
        self.people = people
        self.cursor = Bookmark()
        self.chest = Chest()
        self.files: Files = Folder(folder)
        self.shelf = Shelf()
        self.adapters: list[Matrix] = []
        self._rooms: dict[str, User] = {}
        self._first = ""
        self._line = AsyncExitStack()
        self._connect: Callable[[], AbstractAsyncContextManager[None]] = nullcontext

    @classmethod
    async def make(cls, server: Synapse, folder: Path) -> Self:
        bot = await User.register(server, "Segue")
        people = {name: await User.register(server, name) for name in ("Ann", "Ben")}
        harness = cls(server, folder, bot, people)
        # The bot has been there before: what people say from now on is for it.
        harness._first = harness.cursor.value = str(
            (await bot.call("GET", "/sync", query={"timeout": "0"}))["next_batch"]
        )
        return harness

    async def close(self) -> None:
        for adapter in self.adapters:
            await adapter.close()
        for user in (self.bot, *self.people.values()):
            await user.client.aclose()

    @property
    def keys(self) -> MatrixAccount:
        return MatrixAccount(
            homeserver=self.server.url,
            user=self.bot.id,
            token=Secret(self.bot.token),
            public=True,
            rate=1000.0,
            burst=10_000,
        )

    def adapter(self) -> Matrix:
        adapter = self.keys.adapter("main", self.files)
        adapter.remember(self.chest)
        self.adapters.append(adapter)
        return adapter

    @asynccontextmanager
    async def deliver(self, adapter: Adapter, accept: Accept) -> AsyncIterator[None]:
        assert isinstance(adapter, Remembers)
        adapter.remember(self.chest)
        async with AsyncExitStack() as self._line:
            self._connect = lambda: self.living(adapter, Given(accept, self.cursor))
            await self._line.enter_async_context(self._connect())
            yield

    def living(self, adapter: Adapter, given: Given) -> AbstractAsyncContextManager[None]:
        """Inside, the bot is there."""
        return living(adapter, given)

    async def chat(self, kind: Kind, who: str = "Ann") -> Address:
        owner = self.people[who]
        others = [user for name, user in self.people.items() if name != who] if kind is not Kind.DM else []
        room = await owner.make_room(self.bot, *others, is_direct=kind is Kind.DM)
        for user in (self.bot, *others):
            await user.join(room)
        self._rooms[room] = owner
        return Address("matrix", "main", NAME, room)

    async def say(self, at: Address, text: str, who: str = "Ann") -> str:
        return await self.people[who].says(at.chat, text, at.thread)

    async def attach(self, at: Address, name: str, content: bytes, who: str = "Ann") -> str:
        person = self.people[who]
        kept = await person.uploads(content, "image/png")
        return await person.put(at.chat, {"msgtype": "m.image", "body": name, "url": kept, "m.mentions": {}})

    async def change(self, at: Address, message: str, text: str, who: str = "Ann") -> None:
        await self.people[who].edits(at.chat, message, text)

    async def quote(self, at: Address, message: str, text: str, who: str = "Ann") -> str:
        return await self.people[who].replies(at.chat, message, text)

    async def delete(self, at: Address, message: str, who: str = "Ann") -> None:
        await self.people[who].call("PUT", f"/rooms/{at.chat}/redact/{message}/{message}")

    async def read(self, at: Address) -> list[Seen]:
        return await self._rooms[at.chat].sees(at.chat, self.bot.id, at.thread)

    async def settles(self) -> None:
        """Wait until the bot's place is past all that has happened."""
        kept = self.cursor.value
        await self.people["Ann"].make_room(self.bot)
        await until(lambda: self.cursor.value != kept)

    async def redeliver(self) -> None:
        """The connection breaks, and its place is one from before all that was said."""
        await self._line.aclose()
        self.cursor.value = self._first
        await self._line.enter_async_context(self._connect())

    async def garble(self) -> None:
        at = await self.chat(Kind.DM)
        for content in GARBLED:
            await self.people["Ann"].put(at.chat, content)

    async def nowhere(self) -> Address:
        return Address("matrix", "main", NAME, f"!nowhere:{NAME}")


# A homeserver sees to it that a message has words, and to little else.
GARBLED: list[Json] = [
    {"msgtype": "m.text", "body": "x", "m.relates_to": {"rel_type": "m.thread", "event_id": 7}},
    {"msgtype": "m.text", "body": "x", "m.relates_to": {"m.in_reply_to": "y"}},
    {"msgtype": "m.file", "body": "x", "url": {}, "info": [1]},
    {"msgtype": "m.text", "body": "x", "formatted_body": 7},
]


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something that tells nobody when it happens."""
    async with asyncio.timeout(_PATIENCE):
        while True:
            if holds():
                return
            await asyncio.sleep(0.01)


def _quoted(room: str) -> str:
    return quote(room, safe="")
