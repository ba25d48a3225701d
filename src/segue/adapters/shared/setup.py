"""Helps to add an account: its keys, its owner and a first message."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import NODEFAULT
from msgspec.structs import fields

from segue.adapters.shared.outcomes import calling
from segue.core.commands import Spec
from segue.core.contracts.adapters import Accepted, Adapter, Arrived, Closes, Files, Unfetched
from segue.core.contracts.setup import FoundOwner
from segue.core.lanes import Kind
from segue.core.messages import Arrival, File
from segue.core.values import Secret, Value
from segue.errors import Disconnected, Invalid, SendNever

C = TypeVar("C", bound=Closes)
V = TypeVar("V", bound=Value)


def keys_of(kind: type[V], answers: Mapping[str, str]) -> V:
    """Build an account's keys from the answers to its questions. An empty answer keeps the default."""
    given: dict[str, Any] = {}
    for field in fields(kind):
        said = answers.get(field.name, "").strip()
        if said or field.required:
            given[field.name] = _read(field.name, field.type, said)
    return kind(**given)


def written(keys: Value) -> tuple[dict[str, str], dict[str, Secret]]:
    """Return the keys that differ from their defaults: the plain ones and the secrets."""
    values = {field.name: (getattr(keys, field.name), field.default) for field in fields(keys)}
    changed = {name: value for name, (value, default) in values.items() if default is NODEFAULT or value != default}
    secrets = {name: value for name, value in changed.items() if isinstance(value, Secret)}
    return {name: str(value) for name, value in changed.items() if name not in secrets}, secrets


async def greeted(who: str, api: C, hello: Callable[[C], Awaitable[object]]) -> str:
    """Greet an API by a call, then close it. Return a text for the person who adds the account."""
    async with calling(api):
        try:
            await hello(api)
        except SendNever as error:
            return f"{who} didn't let me say hello: {error}"
    return f"Said hello to you on {who}."


async def met(make: Callable[[str, Files], Adapter], after: str) -> FoundOwner:
    """Run an adapter until a person writes; drop all other updates.

    `after` is the message that an earlier run found, and is skipped.
    """
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


def _read(key: str, kind: Any, said: str) -> Any:
    if not issubclass(kind, StrEnum):
        return kind(said)
    if said not in tuple(kind):
        choices = " or ".join(f'"{one}"' for one in kind)
        raise Invalid(key, f"{said!r} is none", f"Write {choices}.")
    return kind(said)


class _Meeting:
    """An intake and cursor that wait for one person and store nothing."""

    line = ""
    commands: Sequence[Spec] = ()

    def __init__(self, after: str) -> None:
        self.found: asyncio.Future[FoundOwner] = asyncio.get_running_loop().create_future()
        self.cursor = self
        self._after = after

    async def accept(self, arrived: Arrived) -> Accepted:
        """Check who wrote the message."""
        said = arrived.arrival if isinstance(arrived, Unfetched) else arrived
        if isinstance(said, Arrival) and said.place.kind is Kind.DM and said.parts and said.message != self._after:
            user = said.speaker.identity.user
            name = f"{said.speaker.name} ({', '.join([*said.speaker.aliases, user])})".strip()
            if not self.found.done():
                self.found.set_result(FoundOwner(user, said.place.address.chat, name, said.message))
        return Accepted.NEW

    def connected(self) -> None:
        """Do nothing: nobody watches this connection."""

    async def read(self) -> str:
        """Return an empty position, because none was stored."""
        return ""

    async def keep(self, value: str) -> None:
        """Do nothing: no position is stored."""


class _NoFiles:
    """Files for an adapter that fetches none."""

    async def keep(self, name: str, media: str, chunks: AsyncIterator[bytes]) -> File:
        raise NotImplementedError("a meeting fetches no file")

    async def read(self, file: File) -> bytes:
        raise NotImplementedError("a meeting sends no file")

    def stream(self, file: File) -> AsyncIterator[bytes]:
        raise NotImplementedError("a meeting sends no file")
