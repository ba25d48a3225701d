"""Segue's store, used as the gateway uses it."""

import asyncio
import random
import secrets
import time
from collections.abc import Sequence
from pathlib import Path

from bench.raw import HOST
from bench.texts import ANSWER, QUESTION, entry
from segue.changes.accept import Fresh, FrontDoor, Queued
from segue.changes.exchange import replicas, turns
from segue.changes.sessions import transcripts
from segue.core.contracts.database import Driver, Transaction
from segue.core.lanes import Address, Identity, Kind, Person, Place
from segue.core.messages import Arrival, Speaker, Text
from segue.core.settings import GatewaySettings
from segue.core.transcripts import AGENT, Author, Draft, Role
from segue.core.turns import Finish, Reply, Run
from segue.core.values import PersonId, SessionId
from segue.database.sqlite import Sqlite
from segue.database.transactions import one_by_one
from segue.runtime.retrying import Patient
from segue.runtime.turns.transcript_cache import TranscriptCache
from segue.store import Store, fresh_ids

_DOOR = FrontDoor(GatewaySettings())
_TOGETHER = 500
"""Conversations that are populated in one commit."""


class Segue:
    """Turns over a store of Segue's."""

    def __init__(self, store: Store, name: str, at_once: int = 64) -> None:
        self.name = name
        self.store = store
        self._driver = store.driver
        self._transcripts = TranscriptCache(Patient(store.driver))
        self._ids = fresh_ids(time.time)
        self._me = f"bench {secrets.token_hex(4)}"
        self._at_once = at_once
        self._messages = 0

    @classmethod
    async def sqlite(cls, path: Path, at_once: int = 64, vfs: str | None = None) -> "Segue":
        return await cls.over(await Sqlite.open(path, vfs=vfs), "Segue", at_once)

    @classmethod
    async def over(cls, driver: Driver, name: str, at_once: int = 64) -> "Segue":
        made = cls(Store(driver), name, at_once)
        await driver.write(replicas.join, made._me, 1e6)
        return made

    async def close(self) -> None:
        await self.store.close()

    async def turns(self, conversations: Sequence[int]) -> float:
        began = time.perf_counter()
        for number in conversations:
            await self._turn(number)
        return time.perf_counter() - began

    async def accepts(self, conversations: Sequence[int]) -> list[float]:
        """Seconds of each accept; its turn is finished off the clock."""
        taken = []
        for number in conversations:
            began = time.perf_counter()
            run = await self.accept(number)
            taken.append(time.perf_counter() - began)
            await self.finish(run)
        return taken

    async def together(self, conversations: Sequence[int]) -> float:
        left = iter(conversations)

        async def work() -> None:
            for number in left:
                await self._turn(number)

        began = time.perf_counter()
        await asyncio.gather(*[work() for _ in range(self._at_once)])
        return time.perf_counter() - began

    async def _turn(self, number: int) -> None:
        run = await self.accept(number)
        path, done, at = await self._transcripts.path(run), answer(run, ANSWER), time.time()
        self._transcripts.go_on(path, run, done, await self._driver.write(turns.finish, run.held, done, at), at)

    async def accept(self, number: int) -> Run:
        """Take a message of a conversation in."""
        self._messages += 1
        arrival = arrival_of(number, f"{self._me}.{self._messages}", QUESTION)
        queued = await self._driver.write(_DOOR.accept, arrival, self._fresh(time.time()), self._me)
        return _run_of(queued)

    async def finish(self, run: Run) -> None:
        """Answer it."""
        await self._driver.write(turns.finish, run.held, answer(run, ANSWER), time.time())

    async def populate(self, numbers: Sequence[int | str], exchanges: int, dice: random.Random) -> None:
        """Conversations in which so many exchanges were had."""
        for i in range(0, len(numbers), _TOGETHER):
            await self._driver.write(self._populate, numbers[i : i + _TOGETHER], exchanges, dice)

    def _populate(self, numbers: Sequence[int | str], exchanges: int, dice: random.Random) -> Transaction[None]:
        for number in numbers:
            at = time.time()
            arrival = arrival_of(number, f"first.{number}", entry(dice))
            queued = yield from one_by_one(_DOOR.accept(arrival, self._fresh(at), self._me))
            run = _run_of(queued)
            yield from one_by_one(turns.finish(run.held, answer(run, entry(dice)), at))
            author = Author(Role.PERSON, run.turns[0].person)
            more = [Draft((author, AGENT)[n % 2], (Text(entry(dice)),)) for n in range(2 * (exchanges - 1))]
            if more:
                yield from transcripts.append(run.held.session, more, at)

    async def lengthen(self, place: Place, speaker: Speaker, entries: int, dice: random.Random) -> None:
        """A conversation at a place in which so many entries were said."""
        arrival = Arrival(place, "first", speaker, (Text(entry(dice)),), time.time())
        run = _run_of(await self._driver.write(_DOOR.accept, arrival, self._fresh(time.time()), self._me))
        await self.finish(run)
        author = Author(Role.PERSON, run.turns[0].person)
        more = [Draft((author, AGENT)[n % 2], (Text(entry(dice)),)) for n in range(entries - 2)]
        await self._driver.write(transcripts.append, run.held.session, more, time.time())

    async def host(self) -> Person:
        """The person who owns every second conversation."""
        return await self.store.person(Identity("telegram", "bot", HOST), HOST)

    def _fresh(self, at: float) -> Fresh:
        return Fresh(PersonId(self._ids()), SessionId(self._ids()), self._ids(), (self._ids(),), "trace", at)


def place_of(number: int | str) -> Place:
    """Where a conversation is had."""
    return Place(Address("telegram", "bot", chat=f"c{number}"), Kind.DM)


def arrival_of(number: int | str, message: str, text: str) -> Arrival:
    """A message of a conversation; every second one is the host's."""
    user = f"u{number}" if isinstance(number, int) and number % 2 == 0 else HOST
    speaker = Speaker(Identity("telegram", "bot", user), user)
    return Arrival(place_of(number), message, speaker, (Text(text),), time.time())


def answer(run: Run, text: str) -> Finish:
    """What a turn leaves behind: what was asked, the answer, and the message that carries it."""
    asked = tuple(Draft(Author(Role.PERSON, turn.person, turn.name), turn.parts) for turn in run.turns)
    drafts = (*asked, Draft(AGENT, (Text(text),)))
    reply = Reply(Address.parse(run.turns[-1].route), text, len(drafts), (run.turns[-1].message,))
    return Finish(tuple(turn.seq for turn in run.turns), drafts, (reply,))


def _run_of(queued: object) -> Run:
    if not isinstance(queued, Queued) or queued.run is None:
        raise TypeError(f"a message of an idle conversation became {queued!r}")
    return queued.run
