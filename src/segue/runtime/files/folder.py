"""The file store of one machine: files in the data folder."""

import asyncio
import fcntl
import hashlib
import os
import re
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from segue.core.contracts.database import Clock
from segue.core.contracts.files import FILES, damaged, is_kept, is_stored, not_kept, path_of
from segue.core.lanes import clean_name
from segue.core.messages import File
from segue.core.values import Moment
from segue.errors import Invalid, StoreFull, StoreUnreachable

_HALF = "half-"
"""The beginning of the name of a file that isn't whole yet."""
_MARK = "swept"
"""A file whose time says up to when every other one was found named."""
_PIECE_BYTES = 256 * 1024
_MEDIA = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,100}/[A-Za-z0-9!#$&^_.+-]{1,100}")
UNKNOWN = "application/octet-stream"


def file_of(name: str, media: str, where: str, size: int) -> File:
    """A file that was kept, under a name and a media type that mislead nobody."""
    return File(clean_name(Path(name).name) or "file", media if _MEDIA.fullmatch(media) else UNKNOWN, where, size)


class Folder:
    """Keeps files in a data folder."""

    def __init__(self, data: Path, clock: Clock = time.time) -> None:
        self._data = data
        self._clock = clock

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
        if not is_kept(file.where):
            raise not_kept(file.name)
        try:
            return await asyncio.to_thread((self._data / file.where).read_bytes)
        except OSError as error:
            raise _unreadable(file.name, error) from error

    async def stream(self, file: File) -> AsyncIterator[bytes]:
        """The content of a file that was kept, a piece at a time."""
        if not is_kept(file.where):
            raise not_kept(file.name)
        async for piece in self.content(file.where):
            yield piece

    async def content(self, where: str) -> AsyncIterator[bytes]:
        """The content of a file or a result, a piece at a time."""
        if not is_stored(where):
            raise not_kept(where)
        try:
            opened = await asyncio.to_thread((self._data / where).open, "rb")
        except OSError as error:
            raise _unreadable(where, error) from error
        with opened:
            while piece := await asyncio.to_thread(opened.read, _PIECE_BYTES):
                yield piece

    async def find_size(self, where: str) -> int | None:
        """How many bytes a file has; None if it isn't here."""
        path = self._data / where
        try:
            return path.stat().st_size if is_stored(where) and path.is_file() else None
        except FileNotFoundError:
            return None

    async def list_kept(self, folder: str, since: Moment, until: Moment) -> list[str]:
        """The paths in a folder of files that were last kept after one moment and up to another."""
        return await asyncio.to_thread(lambda: [*self._kept(folder, since, until)])

    async def delete(self, where: str, until: Moment) -> bool:
        """Delete a file unless it was kept again since then; returns whether this deleted it."""
        return is_stored(where) and await asyncio.to_thread(_delete, self._data / where, until)

    async def delete_halves(self, until: Moment) -> int:
        """Delete what was begun by then and never became a whole file; returns how many."""
        halves = (self._data / FILES).glob(f"{_HALF}*")
        return await asyncio.to_thread(lambda: sum(_delete(half, until) for half in halves))

    async def read_mark(self) -> Moment:
        """The moment up to which every file was found named; 0 if nobody has looked."""
        return _kept_at(self._data / FILES / _MARK) or 0.0

    async def keep_mark(self, until: Moment) -> None:
        """Remember that moment."""
        mark = self._data / FILES / _MARK
        if mark.parent.is_dir():
            mark.touch(mode=0o600)
            os.utime(mark, (until, until))

    async def now(self) -> Moment:
        """The time by this machine's clock."""
        return self._clock()

    def locate(self, file: File) -> str:
        """Words that tell the host where a file is."""
        return f"it is {file.where} in the data folder"

    async def _write(self, where: str, chunks: AsyncIterator[bytes]) -> tuple[str, int]:
        """Write a file under its path, by its digest if it has none yet; returns the path and how many bytes it has."""
        digest, size = hashlib.sha256(), 0
        try:
            half = await asyncio.to_thread(self._begin)
            try:
                async for chunk in chunks:
                    digest.update(chunk)
                    size += len(chunk)
                    await asyncio.to_thread(half.write, chunk)
                found = path_of(digest.hexdigest())
                if is_kept(where) and where != found:
                    raise damaged(where)
                await asyncio.to_thread(_finish, half, self._data / (where or found))
            finally:
                _drop(half)
        except OSError as error:
            raise StoreFull(f"A file can't be kept in {self._data} ({error.strerror}). See to the disk.") from error
        return where or found, size

    def _begin(self) -> BinaryIO:
        folder = self._data / FILES
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return tempfile.NamedTemporaryFile(dir=folder, prefix=_HALF, delete=False)  # type: ignore[return-value]

    def _kept(self, folder: str, since: Moment, until: Moment) -> Iterator[str]:
        for path in (self._data / folder).rglob("*"):
            where = path.relative_to(self._data).as_posix()
            kept = _kept_at(path) if is_stored(where) else None
            if kept is not None and since < kept <= until:
                yield where


def _unreadable(name: str, error: OSError) -> Invalid:
    return Invalid("file", f"{name} can't be read ({error.strerror})", "See to the data folder.")


def _drop(half: BinaryIO) -> None:
    half.close()
    Path(half.name).unlink(missing_ok=True)


def _finish(half: BinaryIO, final: Path) -> None:
    """Durable before it has its name."""
    half.flush()
    os.fsync(half.fileno())
    final.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(final.parent, fcntl.LOCK_SH) as folder:
        Path(half.name).replace(final)
        os.fsync(folder)


def _delete(path: Path, until: Moment) -> bool:
    """Delete a file unless it was kept again since; returns whether it is gone by this."""
    try:
        with _locked(path.parent, fcntl.LOCK_EX):
            kept = _kept_at(path)
            if kept is None or kept > until:
                return False
            path.unlink()
            return True
    except FileNotFoundError:
        # Another machine's data folder has it, or nobody's.
        return False
    except OSError as error:
        raise StoreUnreachable(f"{path} can't be deleted ({error.strerror}). See to the data folder.") from error


@contextmanager
def _locked(folder: Path, how: int) -> Iterator[int]:
    """A folder's lock: shared while files come to have their names, exclusive while they lose them."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, how)
        yield descriptor
    finally:
        os.close(descriptor)


def _kept_at(path: Path) -> Moment | None:
    """When a file was last kept; None if it is gone."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return None
