"""A large file that comes in and goes out again: how long it takes, and how much more memory the process needs."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.databases import Databases
from bench.servers import server
from bench.table import Line, Target
from segue.core.contracts.files import FileStore
from segue.core.messages import File
from segue.runtime.files.database import DatabaseFiles
from segue.runtime.files.folder import Folder
from segue.store import open_driver

_MEGABYTE = 1024 * 1024
_PAGE_BYTES = 4096
_LARGE, _SMALL = 100, 2
"""Megabytes of a large file, and of one that warms up."""


async def large_files(_: Databases) -> AsyncIterator[Line]:
    """A file of 100 MB, in the database and in a folder."""
    async with server() as dsn:
        driver = await open_driver(dsn)
        with tempfile.TemporaryDirectory() as data:
            for name, files in (("PostgreSQL", DatabaseFiles(driver)), ("a folder", Folder(Path(data)))):
                async for line in _in_and_out(name, files):
                    yield line
        await driver.close()


async def _in_and_out(name: str, files: FileStore) -> AsyncIterator[Line]:
    await _receive(files, _SMALL)
    async with _grown() as (taken, grown):
        file = await _receive(files, _LARGE)
    yield _line(f"{_LARGE} MB into {name}, memory {grown[0]:.1f} MB more", taken[0], grown[0])
    async with _grown() as (taken, grown):
        size = sum([len(piece) async for piece in files.stream(file)])
    if size != file.size:
        raise RuntimeError(f"{size} bytes came back of {file.size}")
    yield _line(f"{_LARGE} MB out of {name}, memory {grown[0]:.1f} MB more", taken[0], grown[0])


def _line(what: str, seconds: float, grown: float) -> Line:
    return Line("files", what, f"{_LARGE / seconds:.0f} MB/s", "", None, Target("<", 10, "MB"), grown)


async def _receive(files: FileStore, megabytes: int) -> File:
    async def pieces() -> AsyncIterator[bytes]:
        for number in range(megabytes * 16):
            yield number.to_bytes(8) * (_MEGABYTE // 16 // 8)

    return await files.keep("large", "application/octet-stream", pieces())


@asynccontextmanager
async def _grown() -> AsyncIterator[tuple[list[float], list[float]]]:
    """The seconds that a block takes, and the most megabytes by which the process was larger than before it."""
    before, taken, grown = _held(), list[float](), [0.0]

    async def watch() -> None:
        while True:
            grown[0] = max(grown[0], (_held() - before) / _MEGABYTE)
            await asyncio.sleep(0.002)

    watching, began = asyncio.create_task(watch()), time.perf_counter()
    yield taken, grown
    taken.append(time.perf_counter() - began)
    watching.cancel()


def _held() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * _PAGE_BYTES
