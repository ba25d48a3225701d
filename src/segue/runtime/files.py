"""The files that came with messages, in the data folder, each under the digest of what is in it.

Law: a file is there whole or not at all, and never changes; the same content twice is one file.
"""

import asyncio
import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from msgspec.structs import replace

from segue.changes.sessions import exports
from segue.core.contracts.adapters import Adapter, Files, SendsFiles
from segue.core.exports.jsonl import Form, export_named_by, to_jsonl
from segue.core.exports.markdown import to_markdown
from segue.core.lanes import clean_name
from segue.core.messages import Delivery, File
from segue.errors import Invalid, StoreFull
from segue.runtime.retrying import Patient

FOLDER = "files"
HALF = "half-"
"""The beginning of the name of a file that isn't whole yet."""
_WHERE = re.compile(rf"{FOLDER}/[0-9a-f]{{2}}/[0-9a-f]{{64}}")
_MEDIA = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,100}/[A-Za-z0-9!#$&^_.+-]{1,100}")
UNKNOWN = "application/octet-stream"


def is_kept(where: str) -> bool:
    """Whether that is a file in a data folder, and nowhere else."""
    return _WHERE.fullmatch(where) is not None


class Folder:
    """Keeps files in a data folder."""

    def __init__(self, data: Path) -> None:
        self._data = data

    async def keep(self, name: str, media: str, chunks: AsyncIterator[bytes]) -> File:
        """Keep what comes; whatever stops it midway leaves nothing behind."""
        digest, size = hashlib.sha256(), 0
        try:
            half = await asyncio.to_thread(self._begin)
            try:
                async for chunk in chunks:
                    digest.update(chunk)
                    size += len(chunk)
                    await asyncio.to_thread(half.write, chunk)
                where = f"{FOLDER}/{digest.hexdigest()[:2]}/{digest.hexdigest()}"
                await asyncio.to_thread(_finish, half, self._data / where)
            finally:
                _drop(half)
        except OSError as error:
            raise StoreFull(f"A file can't be kept in {self._data} ({error.strerror}). See to the disk.") from error
        return File(clean_name(Path(name).name) or "file", media if _MEDIA.fullmatch(media) else UNKNOWN, where, size)

    async def read(self, file: File) -> bytes:
        """The content of a file that was kept."""
        if not is_kept(file.where):
            raise Invalid("file", f"{file.name} isn't one that is kept here", "Keep it first.")
        try:
            return await asyncio.to_thread((self._data / file.where).read_bytes)
        except OSError as error:
            raise Invalid("file", f"{file.name} can't be read ({error.strerror})", "See to the data folder.") from error

    def path(self, where: str) -> Path | None:
        """The path of a file that is kept; None if there is no such file here."""
        found = self._data / where
        return found if is_kept(where) and found.is_file() else None

    def _begin(self) -> BinaryIO:
        folder = self._data / FOLDER
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return tempfile.NamedTemporaryFile(dir=folder, prefix=HALF, delete=False)  # type: ignore[return-value]


def _drop(half: BinaryIO) -> None:
    half.close()
    Path(half.name).unlink(missing_ok=True)


def _finish(half: BinaryIO, final: Path) -> None:
    """Durable before it has its name."""
    half.flush()
    os.fsync(half.fileno())
    final.parent.mkdir(mode=0o700, exist_ok=True)
    with locked(final.parent, fcntl.LOCK_SH) as folder:
        Path(half.name).replace(final)
        os.fsync(folder)


@contextmanager
def locked(folder: Path, how: int) -> Iterator[int]:
    """A folder's lock: shared while files come to have their names, exclusive while they lose them."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, how)
        yield descriptor
    finally:
        os.close(descriptor)


class Exporting:
    """Makes the file of a delivery, and says where it is if its platform takes none."""

    def __init__(self, store: Patient, files: Files | None) -> None:
        self._store = store
        self._files = files

    async def ready(self, delivery: Delivery, named: File, adapter: Adapter) -> Delivery:
        """The delivery of a file as its adapter can send it."""
        file = await self._made(named)
        if file is not None and isinstance(adapter, SendsFiles) and file.size <= adapter.largest_file:
            return replace(delivery, file=file)
        line = "Files aren't kept here. `segue sessions export` writes one."
        if file is not None:
            lasts = "" if file is named else ", for a day"
            line = f"{file.name} can't be sent here: it is {file.where} in the data folder{lasts}."
        return replace(delivery, text=f"{delivery.text}\n{line}".strip(), file=None)

    async def _made(self, file: File) -> File | None:
        if self._files is None:
            return None
        if (named := export_named_by(file)) is None:
            return file
        session, form = named
        whole = await self._store.read(exports.whole, session)
        text = to_markdown(whole) if form is Form.MARKDOWN else to_jsonl(whole)
        return await self._files.keep(file.name, file.media, _once(text.encode()))


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
