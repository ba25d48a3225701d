"""Poison: a message that can't be taken in stops nobody, and its person is told."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from segue.adapters.http import Http
from segue.changes.commands.request import Answer, Request
from segue.changes.exchange import deliveries, letters
from segue.core.contracts.adapters import Accepted, Letter, StatusReport
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import Arrival, SendStatus, Speaker, Text
from segue.core.values import Secret
from segue.database.statements import q
from segue.errors import Fenced, Invalid, StoreFull
from segue.runtime.gateway import Gateway
from segue.runtime.inbox import TOLD
from segue.runtime.server.app import Mounted
from segue.testing import Platform, Shelf
from segue.testing.agents import EchoAgent
from segue.testing.personas import WhatsApp
from tests.adapters.platform import signed
from tests.changes.world import Engine, raw_sql
from tests.in_process import gateway_on
from tests.runtime.telemetry.test_metrics import figure


class Breaking:
    """A command that always breaks a constraint of the schema."""

    def __call__(self, request: Request) -> Transaction[Answer]:
        yield q.add_person(person=request.met.person.id, name="again", at=request.at)
        return Answer("never")


async def test_a_command_that_breaks_a_constraint_is_a_dead_letter(tmp_path: Path) -> None:
    platform = WhatsApp()
    ann = platform.person("Ann")
    async with running(tmp_path, platform, KeyError()) as gateway:
        gateway._commands._table["status"] = Breaking()
        ann.says("/status", platform.dm(ann))
        await platform.dm(ann).reads(TOLD)
        ann.says("are you there?", platform.dm(ann))
        await platform.dm(ann).reads("are you there?")
        [letter] = await gateway.store.driver.read(letters.newest, 10)
    assert letter.why.startswith("StoreConflict")


class Broken:
    """A command that fails after it has changed something."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __call__(self, request: Request) -> Transaction[Answer]:
        yield from deliveries.notify(request.lane.address, "half done", f"half/{request.trace}", (), request.at)
        raise self.error


@asynccontextmanager
async def running(path: Path, platform: WhatsApp, error: Exception) -> AsyncIterator[Gateway]:
    """A gateway whose /status is broken."""
    async with gateway_on(path, EchoAgent(), platform, grace=0.1) as gateway:
        gateway._commands._table["status"] = Broken(error)
        yield gateway


def arrival(platform: Platform, number: int, text: str, id: str = "") -> Arrival:
    identity = Identity(platform.name, platform.account, f"p{number}")
    place = Place(Address(platform.name, platform.account, chat=f"c{number}"), Kind.DM)
    return Arrival(place, id or f"m{number}", Speaker(identity), (Text(text),), 0.0)


async def test_a_command_that_breaks_is_a_dead_letter_its_person_is_told_and_others_are_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    platform = WhatsApp()
    ann, bob = platform.person("Ann"), platform.person("Bob")
    async with running(tmp_path, platform, KeyError("what nobody should read")) as gateway:
        ann.says("/status", platform.dm(ann))
        await platform.dm(ann).reads(TOLD)
        ann.says("are you there?", platform.dm(ann))
        bob.says("and for me?", platform.dm(bob))
        await platform.dm(ann).reads("are you there?")
        await platform.dm(bob).reads("and for me?")
        await platform.settles()
        [letter] = await gateway.store.driver.read(letters.newest, 10)
        account = {"platform": platform.name, "account": platform.account}
        assert figure(gateway.metrics, "segue_dead_letters_total", **account, type="KeyError") == 1
        assert figure(gateway.metrics, "segue_arrivals_total", **account, outcome="dead") == 1
    assert platform.dm(ann).replies == [TOLD, "are you there?"]
    assert (letter.why, "/status" in letter.raw) == ("KeyError", True)
    [told] = [record for record in caplog.records if "can't be taken in" in record.message]
    assert told.exc_info is not None


async def test_what_was_given_up_once_is_a_duplicate_when_it_comes_again(tmp_path: Path) -> None:
    platform = WhatsApp()
    async with running(tmp_path, platform, KeyError()) as gateway:
        poison = arrival(platform, 1, "/status")
        assert [await gateway.accept(poison) for _ in range(3)] == [Accepted.DEAD, *[Accepted.DUPLICATE] * 2]
        assert len(await gateway.store.driver.read(letters.newest, 10)) == 1


async def test_a_dead_letter_is_taken_in_again_once_it_can_be(tmp_path: Path) -> None:
    platform = WhatsApp()
    ann = platform.person("Ann")
    async with running(tmp_path, platform, KeyError()) as gateway:
        driver = gateway.store.driver
        ann.says("hello", platform.dm(ann))
        await platform.dm(ann).reads("hello")
        ann.says("/status", platform.dm(ann))
        await platform.dm(ann).reads(TOLD)
        [letter] = await driver.read(letters.newest, 10)
        await driver.write(letters.want, letter.id, 1.0)
        while await driver.read(letters.wanted, 1):  # noqa: ASYNC110 -- it breaks again, and stays
            await asyncio.sleep(0.01)
        assert [each.id for each in await driver.read(letters.newest, 10)] == [letter.id]
        gateway._commands._table["status"] = mended
        await driver.write(letters.want, letter.id, 1.0)
        await platform.dm(ann).reads("All is well again.")
        assert await driver.read(letters.newest, 10) == []
        await gateway.accept(Letter(platform.name, platform.account, "no words of ours", "torn"))
        [torn] = await driver.read(letters.newest, 10)
        with pytest.raises(Invalid, match="couldn't be read, so it can't be taken in again"):
            await driver.write(letters.want, torn.id, 1.0)
        await driver.write(letters.drop, torn.id, 1.0)
        assert await driver.read(letters.count) == 0


def mended(_: Request) -> Transaction[Answer]:
    yield from ()
    return Answer("All is well again.")


async def test_neighbours_in_one_commit_keep_what_they_changed(tmp_path: Path) -> None:
    platform = WhatsApp()
    async with running(tmp_path, platform, ZeroDivisionError()) as gateway:
        said = [arrival(platform, n, "/status" if n % 3 == 0 else "hello") for n in range(60)]
        outcomes = await asyncio.gather(*map(gateway.accept, said))
        assert outcomes == [Accepted.DEAD if n % 3 == 0 else Accepted.NEW for n in range(60)]
        assert len(await gateway.store.driver.read(letters.newest, 100)) == 20
        assert await asyncio.gather(*map(gateway.accept, said)) == [Accepted.DUPLICATE] * 60


@pytest.mark.parametrize("error", [StoreFull("The disk is full."), Fenced("this")])
async def test_trouble_of_the_store_is_no_dead_letter(tmp_path: Path, error: Exception) -> None:
    platform = WhatsApp()
    async with running(tmp_path, platform, error) as gateway:
        with pytest.raises(type(error)):
            await gateway.accept(arrival(platform, 1, "/status"))
        assert await gateway.store.driver.read(letters.newest, 10) == []


@pytest.mark.parametrize("id", ["nul\0", "half \ud800"], ids=["a NUL", "half of a pair"])
async def test_ids_that_no_database_keeps_are_given_up_without_a_word(tmp_path: Path, id: str) -> None:
    platform = WhatsApp()
    async with running(tmp_path, platform, KeyError()) as gateway:
        assert await gateway.accept(arrival(platform, 1, "hello", id)) is Accepted.DEAD
        assert await gateway.accept(Letter(platform.name, platform.account, id, id)) is Accepted.DEAD
        _, first = await gateway.store.driver.read(letters.newest, 10)
        assert first.why.startswith("Invalid: ")
        # Nor does word about a message that has such an id come again for ever.
        word = StatusReport(platform.name, platform.account, id, SendStatus.NEVER, "it was late")
        assert await gateway.accept(word) is Accepted.DEAD


async def test_a_date_that_some_calendar_cant_name_is_refused(tmp_path: Path) -> None:
    platform = WhatsApp()
    ann = platform.person("Ann")
    async with running(tmp_path, platform, KeyError()):
        ann.says("hello", platform.dm(ann))
        await platform.dm(ann).reads("hello")
        ann.says("/schedule 9999-12-31 23:59 America/New_York x", platform.dm(ann))
        await platform.dm(ann).reads("when: 9999-12-31 23:59 is too far away. Choose a time within ten years.")


async def test_over_http_a_dead_letter_is_accepted(tmp_path: Path) -> None:
    key, now = "s3cret", 1_800_000_000.0
    adapter = Http("alpha", Secret(key), "http://127.0.0.1:9/", Shelf(), lambda: now)
    async with gateway_on(tmp_path, EchoAgent(), adapter) as gateway:
        gateway._commands._table["status"] = Broken(OverflowError())
        [(path, app)] = gateway.webhooks()
        body = b'{"id": "m1", "chat_kind": "dm", "chat": "c", "person": {"id": "u"}, "text": "/status"}'
        transport: Any = httpx2.ASGITransport(Mounted(app))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            answers = [await client.post(path, content=body, headers=signed(key, body, now)) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [202, 200]
        [letter] = await gateway.store.driver.read(letters.newest, 10)
        assert letter.why == "OverflowError"


async def test_a_session_over_which_processes_died_and_that_stays_busy_keeps_no_other_waiting(tmp_path: Path) -> None:
    platform, told, calls = WhatsApp(), asyncio.Event(), Counter[str]()
    ann, dan = platform.person("Ann"), platform.person("Dan")

    async def answer(text: str) -> str:
        calls[text] += 1
        if text == "first" and calls[text] == 2:
            await told.wait()
        return f"heard {text}"

    async with gateway_on(tmp_path, answer, platform, lease=60.0, poll=0.1) as gateway:
        gateway._turns.open = False
        for who, text in ((ann, "first"), (ann, "/retry"), (dan, "second")):
            await gateway.accept(Arrival(platform.dm(who).place, text, Speaker(who.identity), (Text(text),), 0.0))
        raw = await raw_sql(Engine.SQLITE, str(tmp_path / "segue.db"))
        await raw("update sessions set deaths = 2")
        await raw.close()
        gateway._turns.open = True
        gateway._turns.wake.set()
        await platform.dm(dan).reads("heard second")
        told.set()
    assert calls["first"] == 2, "Ann's second turn runs meanwhile"
