"""A file that an agent gives, and a gateway that dies on its way."""

import asyncio
from collections.abc import AsyncIterator

from segue.core.contracts.adapters import Files
from segue.core.contracts.probes import Point
from segue.core.messages import File


async def plans(files: Files) -> File:
    """Plans, kept."""

    async def content() -> AsyncIterator[bytes]:
        yield b"# Plans"

    return await files.keep("plans.md", "text/markdown", content())


class KilledAt:
    """A probe that lets nothing go on once a point was reached so many times."""

    def __init__(self, point: Point, times: int) -> None:
        self.dead = asyncio.Event()
        self._point = point
        self._left = times

    def __call__(self, point: Point) -> None:
        if point is self._point:
            self._left -= 1
        if self._left <= 0:
            self.dead.set()
            raise RuntimeError("killed")
