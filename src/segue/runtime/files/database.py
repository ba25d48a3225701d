"""The file store of many machines: files in the database that they share.

Law: memory and a transaction hold a chunk of a file or two, however large it is.
"""

import contextlib
import hashlib
from collections.abc import AsyncIterator
from urllib.parse import quote
from uuid import uuid4

from segue.changes import files
from segue.core.contracts.database import Driver
from segue.core.contracts.files import damaged, is_kept, is_stored, not_kept, path_of
from segue.core.messages import File
from segue.core.values import Moment
from segue.errors import Invalid, StoreError
from segue.runtime.files.folder import file_of
from segue.runtime.retrying import Patient

CHUNK_BYTES = 512 * 1024


class DatabaseFiles:
    """Keeps files in the database.

    A file that can't be kept now is refused at once, so that its sender tries again. Everything else waits for the
    database, as turns and sweeps do.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._store = Patient(driver)

    async def keep(self, name: str, media: str, chunks: AsyncIterator[bytes]) -> File:
        """Keep what comes; whatever stops it midway leaves nothing behind."""
        where, size = await self._write("", chunks)
        return file_of(name, media, where, size)

    async def put(self, where: str, chunks: AsyncIterator[bytes]) -> None:
        """Make a file durable under its path."""
        if not is_stored(where):
            raise Invalid("file", f"{where} is no path of a file store", "Name another.")
        await self._write(where, chunks)

    async def read(self, file: File) -> bytes:
        """The content of a file that was kept."""
        return b"".join([piece async for piece in self.stream(file)])

    async def stream(self, file: File) -> AsyncIterator[bytes]:
        """The content of a file that was kept, a chunk at a time."""
        if not is_kept(file.where):
            raise not_kept(file.name)
        async for piece in self.content(file.where):
            yield piece

    async def content(self, where: str) -> AsyncIterator[bytes]:
        """The content of a file or a result, a chunk at a time."""
        found = await self._store.read(files.find, where) if is_stored(where) else None
        if found is None:
            raise not_kept(where)
        n, left = 0, found.size
        while left > 0:
            chunk = await self._store.read(files.find_chunk, found.content, n)
            if chunk is None:
                raise not_kept(where)
            yield chunk
            n, left = n + 1, left - len(chunk)

    async def find_size(self, where: str) -> int | None:
        """How many bytes a file has; None if it isn't here."""
        found = await self._store.read(files.find, where)
        return found.size if found else None

    async def list_kept(self, folder: str, since: Moment, until: Moment) -> list[str]:
        """The paths in a folder of files that were last kept after one moment and up to another."""
        return await self._store.read(files.list_kept, folder, since, until)

    async def delete(self, where: str, until: Moment) -> bool:
        """Delete a file unless it was kept again since then; returns whether this deleted it."""
        return await self._store.write(files.delete, where, until)

    async def delete_halves(self, until: Moment) -> int:
        """Delete what was begun by then and never became a whole file; returns how many."""
        return await self._store.write(files.delete_halves, until)

    async def read_mark(self) -> Moment:
        """The moment up to which every file was found named; 0 if nobody has looked."""
        return await self._store.read(files.read_mark)

    async def keep_mark(self, until: Moment) -> None:
        """Remember that moment."""
        await self._store.write(files.keep_mark, until)

    async def now(self) -> Moment:
        """The time by the database's clock, which is the same for all machines."""
        return await self._store.read(files.now)

    def locate(self, file: File) -> str:
        """Words that tell the host where a file is."""
        return f"the page has it at /{file.where}/{quote(file.name)}"

    async def _write(self, where: str, chunks: AsyncIterator[bytes]) -> tuple[str, int]:
        """Store a file under its path, by its digest if it has none yet; returns the path and how many bytes it has."""
        id, digest, size = uuid4().hex, hashlib.sha256(), 0
        await self._driver.write(files.begin, id)
        whole = False
        try:
            n = 0
            async for chunk in _cut(chunks):
                digest.update(chunk)
                size += len(chunk)
                await self._driver.write(files.add_chunk, id, n, chunk)
                n += 1
            found = path_of(digest.hexdigest())
            if is_kept(where) and where != found:
                raise damaged(where)
            await self._driver.write(files.finish, id, where or found, size)
            whole = True
        finally:
            if not whole:
                # What can't be dropped now is swept in a day.
                with contextlib.suppress(StoreError):
                    await self._driver.write(files.drop, id)
        return where or found, size


async def _cut(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes in chunks of one size, the last one of what is left."""
    waiting = bytearray()
    async for piece in pieces:
        waiting += piece
        while len(waiting) >= CHUNK_BYTES:
            yield bytes(waiting[:CHUNK_BYTES])
            del waiting[:CHUNK_BYTES]
    if waiting:
        yield bytes(waiting)
