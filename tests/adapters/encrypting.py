"""People whose client encrypts, each a process of its own on a library that Segue doesn't use."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

from tests.adapters.matrix import User
from tests.servers import ROOT, mautrix
from tests.servers.homeserver import Synapse

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
