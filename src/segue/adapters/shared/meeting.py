"""A meeting: an account that is being added listens until somebody writes to it in private."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from segue.core.commands import Spec
from segue.core.contracts.adapters import Accepted, Adapter, Arrived, Closes, Files, Unfetched
from segue.core.contracts.setup import FoundOwner
from segue.core.lanes import Kind
from segue.core.messages import Arrival, File
from segue.errors import Disconnected


async def met(make: Callable[[str, Files], Adapter], after: str) -> FoundOwner:
    """Let an adapter live until somebody writes, but for the message that was met before; what else comes is gone."""
    meeting = _Meeting(after)
    adapter = make("new", _NoFiles())
    living = asyncio.create_task(adapter.run(meeting))
    either: list[asyncio.Future[Any]] = [living, meeting.found]
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not meeting.found.done():
            living.result()
            raise Disconnected("It stopped by itself.")
        return meeting.found.result()
    finally:
        living.cancel()
        await asyncio.wait([living])
        if isinstance(adapter, Closes):
            await adapter.close()


class _Meeting:
    """An intake and its cursor: it waits for one person, and keeps nothing."""

    line = ""
    commands: Sequence[Spec] = ()

    def __init__(self, after: str) -> None:
        self.found: asyncio.Future[FoundOwner] = asyncio.get_running_loop().create_future()
        self.cursor = self
        self._after = after

    async def accept(self, arrived: Arrived) -> Accepted:
        """Look who wrote."""
        said = arrived.arrival if isinstance(arrived, Unfetched) else arrived
        if isinstance(said, Arrival) and said.place.kind is Kind.DM and said.parts and said.message != self._after:
            user = said.speaker.identity.user
            name = f"{said.speaker.name} ({', '.join([*said.speaker.aliases, user])})".strip()
            if not self.found.done():
                self.found.set_result(FoundOwner(user, said.place.address.chat, name, said.message))
        return Accepted.NEW

    def connected(self) -> None:
        """Nobody looks."""

    async def read(self) -> str:
        """No place was kept."""
        return ""

    async def keep(self, value: str) -> None:
        """No place is."""


class _NoFiles:
    """Files, of which nobody fetches any."""

    async def keep(self, name: str, media: str, chunks: AsyncIterator[bytes]) -> File:
        raise NotImplementedError("a meeting fetches no file")

    async def read(self, file: File) -> bytes:
        raise NotImplementedError("a meeting sends no file")
