"""Files kept in memory, as the gateway's folder keeps them on disk."""

import hashlib
from collections.abc import AsyncIterator

from segue.core.messages import File
from segue.errors import Invalid


class Shelf:
    """Keeps files for as long as a test runs."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        """What is in each, by where it is."""

    async def keep(self, name: str, media: str, chunks: AsyncIterator[bytes]) -> File:
        """Keep what comes."""
        content = b"".join([chunk async for chunk in chunks])
        where = f"files/{hashlib.sha256(content).hexdigest()}"
        self.kept[where] = content
        return File(name, media, where, len(content))

    async def read(self, file: File) -> bytes:
        """What is in a file that was kept."""
        if file.where not in self.kept:
            raise Invalid("file", f"{file.name} isn't one that is kept here", "Keep it first.")
        return self.kept[file.where]
