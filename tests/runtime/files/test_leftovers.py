"""Kept files that nothing names go after their grace; those that anything names stay, whoever looks."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec
import pytest

from segue import open_store
from segue.changes.exchange import letters
from segue.changes.forgetting import named_files
from segue.core.contracts.adapters import Files, Unfetched
from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import Arrival, File, Speaker, Text
from segue.runtime.files.folder import Folder
from segue.runtime.files.leftovers import GRACE, Leftovers
from segue.runtime.gateway import Gateway
from segue.runtime.retrying import Patient
from segue.store import Store
from segue.testing.agents import ScriptedAgent
from tests.adapters.matrix import until
from tests.forge import start
from tests.in_process import PUBLIC, gateway_on
from tests.runtime.telemetry.test_metrics import figure

LONG_AGO = time.time() - 2 * GRACE


async def once(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def kept(folder: Path, content: bytes, at: float = LONG_AGO) -> File:
    file = await Folder(folder).keep("cat.png", "image/png", once(content))
    os.utime(folder / file.where, (at, at))
    return file


def there(folder: Path, *files: File) -> list[bool]:
    return [(folder / file.where).exists() for file in files]


def arrival(message: str, *files: File) -> Arrival:
    place = Place(Address("test", "main", "", "c"), Kind.DM)
    return Arrival(place, message, Speaker(Identity("test", "main", "u"), "Ann"), (Text("look"), *files), time.time())


class OnlyKept:
    """Files that a gateway keeps and doesn't sweep."""

    def __init__(self, files: Files) -> None:
        self.keep, self.read, self.stream = files.keep, files.read, files.stream


def gateway(where: str, folder: Path, agent: ScriptedAgent | None = None) -> AbstractAsyncContextManager[Gateway]:
    """A gateway; it sweeps by itself unless it is given an agent."""
    files, answering = OnlyKept(Folder(folder)) if agent else Folder(folder), agent or ScriptedAgent(["Nice."])
    accounts = {("test", "main"): PUBLIC}
    return gateway_on(where, answering, accounts=accounts, files=files, grace=5.0)


def looking(store: Store, folder: Path) -> Leftovers:
    return Leftovers(Patient(store.driver), Folder(folder), lambda _: None)


async def test_what_any_row_names_stays_and_the_rest_goes_after_its_grace(database: str, tmp_path: Path) -> None:
    said, given, dead, nobodys = [await kept(tmp_path, word.encode()) for word in ("said", "given", "dead", "nobody's")]
    young = await kept(tmp_path, b"on its way", time.time())
    half = tmp_path / "files" / "half-1"
    half.write_bytes(b"ha")
    os.utime(half, (LONG_AGO, LONG_AGO))
    async with gateway(database, tmp_path, ScriptedAgent(["Here.", given])) as running:
        await running.accept(arrival("1", said))
        store = running.store
        raw = msgspec.json.encode(arrival("2", dead)).decode()
        await store.driver.write(letters.bury, "test/main/", raw, "no", time.time())
        await running.stop()
        assert await looking(store, tmp_path).once() == 1
    assert there(tmp_path, said, given, dead, nobodys, young) == [True, True, True, False, True]
    assert not half.exists()


async def test_one_look_reads_a_few_pages_and_the_next_only_what_is_new(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_files, "_PAGE", 2)
    async with await open_store(database) as store:
        files = [await kept(tmp_path, f"{n}".encode(), LONG_AGO + n) for n in range(7)]
        for n, file in enumerate(files):
            raw = msgspec.json.encode(arrival(f"{n}", file)).decode()
            await store.driver.write(letters.bury, "test/main/", raw, "no", time.time())
        look = looking(store, tmp_path)
        assert await look.once() == 0
        # Known by now: nobody asks for it again, until somebody has something forgotten.
        [newest] = await store.driver.read(letters.newest, 1)
        await store.driver.write(letters.drop, newest.id, time.time())
        nobodys = await kept(tmp_path, b"new", time.time() - GRACE - 1)
        assert await look.once() == 0, "it was swept up to a day ago a moment ago"
        os.utime(tmp_path / nobodys.where, (time.time() - GRACE + 0.01,) * 2)
        await asyncio.sleep(0.02)
        assert await look.once() == 1
        assert there(tmp_path, nobodys, *files) == [False, *[True] * 7]


async def test_a_file_that_only_another_machine_has_is_passed_over(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    file, also_here = await kept(elsewhere, b"elsewhere"), await kept(here, b"also here")
    async with await open_store(tmp_path / "segue.db") as store:
        assert await looking(store, here).sweep([file.where, also_here.where], time.time()) == 1
    assert there(here, also_here) == [False]
    assert there(elsewhere, file) == [True]


async def test_the_same_content_kept_again_is_never_lost_to_two_who_sweep(database: str, tmp_path: Path) -> None:
    async with await open_store(database) as one, await open_store(database) as two:
        for n in range(30):
            file = await kept(tmp_path, f"{n}".encode())
            path = tmp_path / file.where
            until = time.time() - GRACE
            looks = looking(one, tmp_path).sweep([file.where], until), looking(two, tmp_path).sweep([file.where], until)
            again = Folder(tmp_path).keep("cat.png", "image/png", once(f"{n}".encode()))
            # Whatever comes first: the one that is kept again is young, and stays.
            _, first, second = await asyncio.gather(again, *looks)
            assert first + second <= 1
            assert path.exists()


async def _die_half_way(where: str, folder: Path) -> None:
    bare = arrival("1")

    async def fetch() -> Arrival:
        file = await Folder(folder).keep("cat.png", "image/png", once(b"half way in"))
        os.kill(os.getpid(), signal.SIGKILL)
        return bare.with_files([file])

    async with gateway(where, folder) as running:
        await running.accept(Unfetched(arrival("1", File("cat.png", "image/png", "")), fetch))


def dies_half_way(where: str, folder: Path) -> None:
    """A gateway whose process ends once a file is kept, and its message isn't."""
    asyncio.run(_die_half_way(where, folder))


async def test_a_file_whose_gateway_was_killed_before_its_message_was_kept(database: str, tmp_path: Path) -> None:
    dying = await asyncio.to_thread(start, dies_half_way, database, tmp_path)
    await asyncio.to_thread(dying.join)
    assert dying.exitcode == -signal.SIGKILL
    [left] = (tmp_path / "files").glob("??/*")
    async with await open_store(database) as store:
        assert await looking(store, tmp_path).once() == 0, "its message may still be on its way in"
    os.utime(left, (LONG_AGO, LONG_AGO))
    (tmp_path / "files" / "swept").unlink(missing_ok=True)
    async with gateway(database, tmp_path) as running:
        await until(lambda: figure(running.metrics, "segue_files_swept_total") == 1)
    assert not left.exists()
    # The platform tells it again, and then it is here to stay.
    async with gateway(database, tmp_path, ScriptedAgent(["Nice."])) as running:
        await running.accept(arrival("1", await kept(tmp_path, b"half way in", time.time())))
        os.utime(left, (LONG_AGO, LONG_AGO))
        (tmp_path / "files" / "swept").unlink(missing_ok=True)
        assert await looking(running.store, tmp_path).once() == 0
    assert left.exists()
