"""Every file store keeps the same promises: the folder, and the database of either kind."""

import asyncio
import hashlib
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from segue.core.contracts.files import FILES, RESULTS, FileStore
from segue.core.messages import File
from segue.errors import Invalid, StoreError
from segue.runtime.files import database as database_files
from segue.runtime.files.database import CHUNK_BYTES, DatabaseFiles
from segue.runtime.files.folder import Folder
from segue.store import open_driver

RESULT = f"{RESULTS}/one/2026-06-01T0900+0000.md"
LARGE = bytes(range(256)) * 5_000


async def chunks(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def all_of(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


@pytest.fixture(params=["folder", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[FileStore]:
    """An empty store, but for a bystander's file."""
    if request.param == "folder":
        stored: FileStore = Folder(tmp_path)
        await stored.keep("bystander", "text/plain", chunks(b"bystander"))
        yield stored
        return
    where = tmp_path / "segue.db" if request.param == "sqlite" else request.getfixturevalue("today_dsn")
    driver = await open_driver(where)
    stored = DatabaseFiles(driver)
    await stored.keep("bystander", "text/plain", chunks(b"bystander"))
    yield stored
    await driver.close()


async def others(store: FileStore) -> list[str]:
    """The paths of all files but the bystander's, which is there."""
    found = await store.list_kept(FILES, 0.0, await store.now() + 1)
    bystander = next(where for where in found if where.endswith(hashlib.sha256(b"bystander").hexdigest()))
    assert await all_of(store.content(bystander)) == b"bystander"
    return [where for where in found if where != bystander]


@pytest.mark.parametrize("content", [b"", b"walk, then cake", LARGE], ids=["empty", "small", "large"])
async def test_a_file_comes_back_as_it_was_kept(store: FileStore, content: bytes) -> None:
    file = await store.keep("plan.txt", "text/plain", chunks(content[:3], content[3:]))
    assert (file.name, file.media, file.size) == ("plan.txt", "text/plain", len(content))
    assert file.where == f"files/{hashlib.sha256(content).hexdigest()[:2]}/{hashlib.sha256(content).hexdigest()}"
    assert await store.read(file) == await all_of(store.stream(file)) == content
    assert await store.find_size(file.where) == len(content)
    assert await others(store) == [file.where]


async def test_the_same_content_is_one_file_that_is_young_again(store: FileStore) -> None:
    first = await store.keep("a.txt", "text/plain", chunks(b"same"))
    between = await store.now()
    second = await store.keep("b.txt", "text/plain", chunks(b"sa", b"me"))
    assert first.where == second.where
    assert await others(store) == [first.where]
    assert not await store.delete(first.where, between - 1)
    assert await store.read(second) == b"same"


async def test_the_same_content_kept_at_once_and_deleted_meanwhile_is_there(store: FileStore) -> None:
    before = await store.now() - 1
    for n in range(10):
        content = f"{n}".encode()
        kept = [store.keep("a", "text/plain", chunks(content)) for _ in range(3)]
        deleted = [store.delete(f"files/{d[:2]}/{d}", before) for d in [hashlib.sha256(content).hexdigest()] * 2]
        files = await asyncio.gather(*kept)
        assert not any(await asyncio.gather(*deleted))
        assert await store.read(files[0]) == content


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a\nb\u202e", "", "x" * 500])
async def test_a_name_leads_nowhere(store: FileStore, name: str) -> None:
    file = await store.keep(name, "no media type at all", chunks(b"x"))
    assert file.name
    assert "/" not in file.name
    assert len(file.name) <= 64
    assert file.media == "application/octet-stream"


@pytest.mark.parametrize("where", ["segue.db", "../secret", "/etc/passwd", "files/../segue.db", "files/ab/" + "0" * 64])
async def test_only_what_is_stored_is_read(store: FileStore, where: str) -> None:
    file = File("a", "text/plain", where)
    for reading in (store.read(file), all_of(store.stream(file)), all_of(store.content(where))):
        with pytest.raises(Invalid):
            await reading
    assert await store.find_size(where) is None


async def test_a_result_is_no_file_of_a_message(store: FileStore) -> None:
    await store.put(RESULT, chunks(b"# news\n"))
    await store.put(RESULT, chunks(b"# news\n"))
    assert await all_of(store.content(RESULT)) == b"# news\n"
    with pytest.raises(Invalid):
        await store.read(File("a", "text/markdown", RESULT))
    now = await store.now() + 1
    assert await store.list_kept(f"{RESULTS}/one", 0.0, now) == [RESULT]
    assert await store.list_kept(f"{RESULTS}/on", 0.0, now) == []
    assert await others(store) == []
    assert await store.delete(RESULT, now)
    assert await store.list_kept(RESULTS, 0.0, now) == []


async def test_content_that_is_not_what_its_path_says_is_refused(store: FileStore) -> None:
    digest = hashlib.sha256(b"right").hexdigest()
    with pytest.raises(Invalid):
        await store.put(f"files/{digest[:2]}/{digest}", chunks(b"wrong"))
    with pytest.raises(Invalid):
        await store.put("segue.db", chunks(b"wrong"))
    assert await others(store) == []
    await store.put(f"files/{digest[:2]}/{digest}", chunks(b"right"))
    assert len(await others(store)) == 1


async def test_what_stops_midway_leaves_nothing(store: FileStore) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield LARGE
        raise ConnectionError

    with pytest.raises((ConnectionError, StoreError)):
        await store.keep("a", "text/plain", broken())
    assert await others(store) == []
    assert await store.delete_halves(await store.now() + 1) == 0


async def test_what_was_begun_and_never_ended_is_swept(store: FileStore) -> None:
    come = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield LARGE
        come.set()
        await asyncio.Event().wait()

    keeping = asyncio.create_task(store.keep("a", "text/plain", endless()))
    await come.wait()
    assert await store.delete_halves(await store.now() - 60) == 0
    assert await store.delete_halves(await store.now() + 1) == 1
    keeping.cancel()
    await asyncio.wait([keeping])
    assert await others(store) == []


async def test_a_deleted_file_is_gone_once(store: FileStore) -> None:
    file = await store.keep("a", "text/plain", chunks(LARGE))
    now = await store.now() + 1
    assert [await store.delete(file.where, now), await store.delete(file.where, now)] == [True, False]
    assert not await store.delete("files/ab/" + "0" * 64, now)
    with pytest.raises(Invalid):
        await store.read(file)
    assert await others(store) == []


async def test_a_file_that_is_deleted_while_it_is_read_says_so(store: FileStore) -> None:
    file = await store.keep("a", "text/plain", chunks(LARGE))
    reading = store.stream(file)
    got = [await anext(reading)]
    await store.delete(file.where, await store.now() + 1)
    try:
        got += [piece async for piece in reading]
    except Invalid:
        return
    # A folder's file stays for whoever has it open.
    assert b"".join(got) == LARGE


async def test_files_are_listed_by_when_they_were_kept(store: FileStore) -> None:
    before = await store.now() - 1
    file = await store.keep("a", "text/plain", chunks(b"a"))
    after = await store.now() + 1
    assert file.where in await store.list_kept(FILES, before, after)
    assert await store.list_kept(FILES, after, after + 1) == []
    assert await store.list_kept(FILES, 0.0, before) == []


async def test_the_mark_is_remembered(store: FileStore) -> None:
    assert await store.read_mark() == 0.0
    await store.keep_mark(1_780_000_000.5)
    assert await store.read_mark() == pytest.approx(1_780_000_000.5)


async def test_a_large_file_is_never_whole_in_memory(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_files, "CHUNK_BYTES", 64 * 1024)

    async def large() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield bytes(100_000)

    tracemalloc.start()
    file = await store.keep("a", "text/plain", large())
    size = 0
    async for piece in store.stream(file):
        size += len(piece)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size == file.size == 20_000_000
    assert peak < 2_000_000


async def test_a_chunk_is_one_transaction(today_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = await open_driver(today_dsn)
    written: list[int] = []
    write: Callable[..., Awaitable[object]] = driver.write

    async def counting(transaction: Callable[..., object], *args: object) -> object:
        written.extend(len(arg) for arg in args if isinstance(arg, bytes))
        return await write(transaction, *args)

    monkeypatch.setattr(driver, "write", counting)
    await DatabaseFiles(driver).keep("a", "text/plain", chunks(bytes(CHUNK_BYTES * 2 + 5)))
    await driver.close()
    assert written == [CHUNK_BYTES, CHUNK_BYTES, 5]
