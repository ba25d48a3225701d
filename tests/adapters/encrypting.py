"""People whose client encrypts, each a process of its own on a library that Segue doesn't use."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Self

from segue.core.contracts.adapters import Adapter
from segue.core.lanes import Address, Kind
from segue.testing import Inbox
from segue.testing.harness import Given, Seen, living
from tests.adapters.matrix import MatrixHarness, User
from tests.servers import ROOT, mautrix
from tests.servers.homeserver import NAME, Synapse

Json = dict[str, Any]
_PATIENCE = 90.0
_LONGEST = 2**24


class Encrypting:
    """Somebody who talks in encrypted rooms."""

    def __init__(self, user: User, process: asyncio.subprocess.Process) -> None:
        self.user = user
        self.id = user.id
        self._process = process
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    @asynccontextmanager
    async def on(cls, server: Synapse, name: str) -> AsyncIterator[Self]:
        """A person with a new account."""
        user = await User.register(server, name)
        device = (await user.call("GET", "/account/whoami"))["device_id"]
        async with cls.of(server, user, device) as person:
            yield person
        await user.client.aclose()

    @classmethod
    @asynccontextmanager
    async def of(cls, server: Synapse, user: User, device: str) -> AsyncIterator[Self]:
        """Somebody on one of their devices."""
        # -P: what lies beside it isn't to be found by the names of the standard library.
        program = [str(mautrix()), "-P", str(ROOT / "tests" / "servers" / "mautrix_client.py")]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*program, stdin=pipe, stdout=pipe, limit=_LONGEST)
        person = cls(user, process)
        try:
            await person.does("begin", url=server.url, user=user.id, device=device, token=user.token)
            yield person
        finally:
            process.kill()
            await process.wait()
            await person._listening

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            told = json.loads(line)
            if not (asked := self._asked.pop(told["id"])).done():
                asked.set_result(told)

    async def does(self, do: str, **how: Any) -> Any:
        """Let the client do something."""
        assert self._process.stdin is not None
        id = len(self._asked) + 1 if not self._asked else max(self._asked) + 1
        answer = self._asked[id] = asyncio.get_running_loop().create_future()
        self._process.stdin.write(json.dumps({"id": id, "do": do, "with": how}).encode() + b"\n")
        async with asyncio.timeout(_PATIENCE):
            told = await answer
        assert "error" not in told, told["error"]
        return told["result"]

    async def room(self, *others: User | Encrypting, direct: bool = False, **encryption: Any) -> str:
        """A new encrypted room."""
        return str(await self.does("room", invite=[one.id for one in others], direct=direct, **encryption))

    async def says(self, room: str, text: str, thread: str = "", more: Json | None = None) -> str:
        content: Json = {"msgtype": "m.text", "body": text, "m.mentions": {}, **(more or {})}
        if thread:
            content["m.relates_to"] = {"rel_type": "m.thread", "event_id": thread, "is_falling_back": True}
        return str(await self.does("say", room=room, content=content))

    async def edits(self, room: str, event: str, text: str) -> str:
        new = {"msgtype": "m.text", "body": text, "m.mentions": {}}
        relation = {"rel_type": "m.replace", "event_id": event}
        return await self.says(room, f"* {text}", more={"m.new_content": new, "m.relates_to": relation})

    async def reads(self, room: str, *texts: str, thread: str = "") -> list[Json]:
        """Wait until the last that others have said in a room is this; returns all that they have."""
        seen: list[Json] = await self.does("reads", room=room, texts=list(texts), thread=thread)
        return seen

    async def attaches(self, room: str, name: str, content: bytes) -> str:
        return str(await self.does("attach", room=room, name=name, data=b64encode(content).decode()))

    async def fetches(self, file: Json) -> bytes:
        return b64decode(await self.does("fetch", file=file))


class EncryptedHarness(MatrixHarness):
    """Lets the contracts speak in encrypted rooms."""

    def __init__(self, server: Synapse, folder: Path, bot: User, people: dict[str, User]) -> None:
        super().__init__(server, folder, bot, people)
        self._clients: dict[str, Encrypting] = {}
        self._open = AsyncExitStack()
        self._owners: dict[str, Encrypting] = {}

    @classmethod
    async def make(cls, server: Synapse, folder: Path) -> Self:
        harness = await super().make(server, folder)
        # The bot's device has been there before, too.
        async with harness.living(harness.adapter(), Given(Inbox().accept, harness.cursor)):
            return harness

    async def close(self) -> None:
        await self._open.aclose()
        await super().close()

    async def client(self, who: str) -> Encrypting:
        """Somebody's client, which is started when they first do something."""
        if who not in self._clients:
            user = self.people[who]
            device = (await user.call("GET", "/account/whoami"))["device_id"]
            self._clients[who] = await self._open.enter_async_context(Encrypting.of(self.server, user, device))
        return self._clients[who]

    @asynccontextmanager
    async def living(self, adapter: Adapter, given: Given) -> AsyncIterator[None]:
        """Whoever speaks before the bot's device is known can't be read by it."""
        async with living(adapter, given):
            await given.is_well()
            yield

    async def chat(self, kind: Kind, who: str = "Ann") -> Address:
        owner = await self.client(who)
        others = [await self.client(name) for name in self.people if name != who and kind is not Kind.DM]
        room = await owner.room(self.bot, *others, direct=kind is Kind.DM)
        await self.bot.join(room)
        for other in others:
            await other.does("join", room=room)
        there = [self.bot.id, owner.id, *(other.id for other in others)]
        for one in (owner, *others):
            for user in there:
                await one.does("joined", room=room, user=user)
        self._owners[room] = owner
        return Address("matrix", "main", NAME, room)

    async def say(self, at: Address, text: str, who: str = "Ann") -> str:
        return await (await self.client(who)).says(at.chat, text, at.thread)

    async def attach(self, at: Address, name: str, content: bytes, who: str = "Ann") -> str:
        return await (await self.client(who)).attaches(at.chat, name, content)

    async def change(self, at: Address, message: str, text: str, who: str = "Ann") -> None:
        await (await self.client(who)).edits(at.chat, message, text)

    async def quote(self, at: Address, message: str, text: str, who: str = "Ann") -> str:
        answers = {"m.relates_to": {"m.in_reply_to": {"event_id": message}}}
        return await (await self.client(who)).says(at.chat, text, more=answers)

    async def read(self, at: Address) -> list[Seen]:
        owner = self._owners[at.chat]
        sealed = await owner.user.timeline(at.chat, "m.room.encrypted")
        ids = [one["event_id"] for one in sealed if one["sender"] == self.bot.id and one["content"]]
        shown = await owner.does("has", room=at.chat, ids=ids, thread=at.thread)
        return [Seen(one["id"], one["text"]) for one in shown if one["id"] in ids]
