"""Machines that share a PostgreSQL database, each with a data folder of its own, share their files, too."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import msgspec

from segue.changes.forgetting import cleaning, erasure
from segue.changes.forgetting.erasure import Cause, Reason
from segue.cli.host import file_store
from segue.config import default
from segue.core.contracts.agents import Agent, Event, Work
from segue.core.contracts.files import FILES, RESULTS, FileStore
from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import Arrival, File, Speaker, Text
from segue.core.transcripts import Entry, Role
from segue.core.values import LAST_MOMENT, Secret
from segue.errors import Invalid
from segue.runtime.files.folder import Folder
from segue.runtime.files.upload import upload_folder
from segue.runtime.gateway import Gateway
from segue.store import Store, open_store
from segue.testing.agents import ScriptedAgent
from tests.in_process import PUBLIC, gateway_on

LONG_AGO = time.time() - 1000.0
ANN = Identity("test", "main", "u")


async def once(content: bytes) -> AsyncIterator[bytes]:
    yield content


def arrival(message: str, *files: File) -> Arrival:
    place = Place(Address("test", "main", "", "c"), Kind.DM)
    return Arrival(place, message, Speaker(ANN, "Ann"), (Text("look"), *files), time.time())


def stored(dsn: str, data: Path, store: Store) -> FileStore:
    """Where a machine with this data folder stores files."""
    config = msgspec.structs.replace(default({"SEGUE_HOME": str(data)}), store=Secret(dsn))
    return file_store(config, store)


@asynccontextmanager
async def machine(dsn: str, data: Path, agent: Agent) -> AsyncIterator[tuple[Gateway, FileStore]]:
    """A gateway on a machine."""
    async with await open_store(dsn) as store:
        files = stored(dsn, data, store)
        await upload_folder(data, files, store.driver)
        accounts = {("test", "main"): PUBLIC}
        async with gateway_on(
            store.driver, agent, accounts=accounts, files=files, data=str(data), poll=0.02
        ) as gateway:
            yield gateway, files


async def path_of_ann(store: Store) -> list[Entry]:
    [session] = await store.sessions(await store.person(ANN))
    return await store.path(session.id)


async def answered(gateway: Gateway, text: str) -> list[Entry]:
    """Ann's transcript, once it ends with this."""
    path: list[Entry] = []
    while not (path and path[-1].author.role is Role.AGENT):
        await asyncio.sleep(0.01)
        path = await path_of_ann(gateway.store)
    assert path[-1].text == text
    return path


def bytes_in(*folders: Path) -> bytes:
    return b"".join(path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file())


async def bytes_of(dsn: str) -> bytes:
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "segue"})
    rows = await connection.fetch("select bytes from file_chunks")
    await connection.close()
    return b"".join(row["bytes"] for row in rows)


def nice(_: Work) -> list[str]:
    return ["Nice."]


class Reads:
    """An agent that says what is in the files that it is sent."""

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        for draft in work.asked:
            for file in (part for part in draft.parts if isinstance(part, File)):
                try:
                    yield Text((await work.files.read(file)).decode())
                except Invalid as error:
                    yield Text(str(error))


class Hangs:
    """An agent that never answers."""

    def __init__(self) -> None:
        self.began = asyncio.Event()

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        self.began.set()
        await asyncio.Event().wait()
        yield Text(f"never: {work.session}")


async def test_a_turn_that_another_machine_takes_reads_the_files(today_dsn: str, tmp_path: Path) -> None:
    hangs = Hangs()
    async with machine(today_dsn, tmp_path / "a", hangs) as (first, files):
        await first.accept(arrival("1", await files.keep("cat.txt", "text/plain", once(b"a cat"))))
        await hangs.began.wait()
    async with machine(today_dsn, tmp_path / "b", Reads()) as (second, _):
        await answered(second, "a cat")


async def test_a_forget_on_one_machine_deletes_the_files_of_all(today_dsn: str, tmp_path: Path) -> None:
    answers = ScriptedAgent(otherwise=nice)
    async with machine(today_dsn, tmp_path / "a", answers) as (first, files):
        await first.accept(arrival("1", await files.keep("cat.txt", "text/plain", once(b"a secret cat"))))
        await answered(first, "Nice.")
        bystander = await files.keep("dog.txt", "text/plain", once(b"a dog"))
        other = Place(Address("test", "main", "", "d"), Kind.DM)
        bob = Speaker(Identity("test", "main", "v"), "Bob")
        await first.accept(Arrival(other, "2", bob, (Text("look"), bystander), time.time()))
    async with machine(today_dsn, tmp_path / "b", answers) as (second, files):
        driver = second.store.driver
        person = await second.store.person(ANN)
        [session] = await second.store.sessions(person)
        await driver.write(erasure.session, session.id, Reason(person.id, Cause.ASKED, time.time()))
        while True:
            if not await driver.read(cleaning.to_clean, 10):
                break
            await asyncio.sleep(0.01)
        assert await files.read(bystander) == b"a dog"
    assert b"a secret cat" not in await bytes_of(today_dsn)
    assert b"a secret cat" not in bytes_in(tmp_path)
    assert b"a dog" in await bytes_of(today_dsn)


async def test_a_clock_that_is_behind_the_databases_leaves_no_file(today_dsn: str, tmp_path: Path) -> None:
    behind = time.time() - 30.0
    async with machine(today_dsn, tmp_path, ScriptedAgent(otherwise=nice)) as (gateway, files):
        await gateway.accept(arrival("1", await files.keep("cat.txt", "text/plain", once(b"a secret cat"))))
        await answered(gateway, "Nice.")
        person = await gateway.store.person(ANN)
        [session] = await gateway.store.sessions(person)
        await gateway.store.driver.write(erasure.session, session.id, Reason(person.id, Cause.ASKED, behind))
        cleaner = gateway._cleaner
        await cleaner.once()
        waiting = await gateway.store.driver.read(cleaning.to_clean, 10)
        assert waiting, "the file is younger than the request, and may belong to a message on its way in"
    connection = await asyncpg.connect(today_dsn, server_settings={"search_path": "segue"})
    await connection.execute("update files set kept = kept - 100")
    await connection.execute("update forgettings set at = at - 100")
    await connection.close()
    async with machine(today_dsn, tmp_path, ScriptedAgent(otherwise=nice)) as (gateway, _):
        while True:
            if not await gateway.store.driver.read(cleaning.to_clean, 10):
                break
            await asyncio.sleep(0.01)
    assert await bytes_of(today_dsn) == b""


async def test_files_of_an_earlier_version_are_moved_in_at_the_start(today_dsn: str, tmp_path: Path) -> None:
    data = tmp_path / "a"
    folder = Folder(data)
    named, nobodys = [await folder.keep(f"{n}", "text/plain", once(n.encode())) for n in ("named", "nobody's")]
    broken = await folder.keep("broken", "text/plain", once(b"broken"))
    (data / broken.where).write_bytes(b"no more what it was")
    for file in (named, nobodys, broken):
        os.utime(data / file.where, (LONG_AGO, LONG_AGO))
    async with gateway_on(today_dsn, ScriptedAgent(otherwise=nice), accounts={("test", "main"): PUBLIC}) as before:
        await before.accept(arrival("1", named, broken))
        await answered(before, "Nice.")
    async with machine(today_dsn, data, Reads()) as (_, files):
        assert await files.read(named) == b"named"
        assert await files.list_kept(FILES, 0.0, LAST_MOMENT) == [named.where]
        assert await folder.list_kept(FILES, 0.0, LAST_MOMENT) == [broken.where]
    # What was kept just now may wait for its message.
    late = await folder.keep("late", "text/plain", once(b"late"))
    async with await open_store(today_dsn) as store:
        assert await upload_folder(data, stored(today_dsn, data, store), store.driver) == 0
    assert set(await folder.list_kept(FILES, 0.0, LAST_MOMENT)) == {late.where, broken.where}


async def test_results_of_an_earlier_version_are_moved_in(today_dsn: str, tmp_path: Path) -> None:
    folder, where = Folder(tmp_path), f"{RESULTS}/one/2026-06-01T0900+0000.md"
    await folder.put(where, once(b"# news\n"))
    async with await open_store(today_dsn) as store:
        files = stored(today_dsn, tmp_path, store)
        assert await upload_folder(tmp_path, files, store.driver) == 1
        assert [piece async for piece in files.content(where)] == [b"# news\n"]
    assert await folder.list_kept(RESULTS, 0.0, LAST_MOMENT) == []
