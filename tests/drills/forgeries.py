"""Forged and replayed calls for every proof that a webhook asks for: none becomes a turn or a dead letter.

In between the gateway is started anew. Most calls are made where the server hands them to the adapter.
"""

import asyncio
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2

from segue.changes.accept import Duplicate, Fresh, FrontDoor
from segue.core.contracts.adapters import Accepted, Arrived, Letter, StatusReport, Unfetched
from segue.core.settings import GatewaySettings
from segue.core.values import PersonId, SessionId, Value
from segue.database.sqlite import RunsIn, Sqlite
from segue.store import fresh_ids
from tests.adapters.platform import signed
from tests.clients import http_client
from tests.drills.forgers import FORGERS, NOW, Call, http_forgeries
from tests.drills.gateways import ACCOUNT, SECRET, Plan, start
from tests.drills.planting import Bug, planted
from tests.drills.town import Town
from tests.forge import kill

_DOOR = FrontDoor(GatewaySettings())
_LIVES = 4
"""Starts in one run."""


class Found(Value, frozen=True):
    """What came of forgeries and replays."""

    answers: dict[str, int]
    """How often each status was answered for each proof."""
    wrong: list[str]


class _House:
    """A webhook for each proof, on one database, from one start to the next."""

    def __init__(self, driver: Sqlite) -> None:
        self._driver = driver
        self._ids = fresh_ids(lambda: NOW)
        self.now = NOW
        self.doors = {proof: forger.door(self._accept, lambda: self.now) for proof, forger in FORGERS.items()}
        self.accepted: Counter[Accepted] = Counter()

    async def _accept(self, arrival: Arrived) -> Accepted:
        assert not isinstance(arrival, Unfetched | StatusReport)
        if isinstance(arrival, Letter):
            outcome = Accepted.DEAD
        else:
            fresh = Fresh(
                PersonId(self._ids()), SessionId(self._ids()), self._ids(), (self._ids(),), self._ids(), self.now
            )
            taken = await self._driver.write(_DOOR.accept, arrival, fresh, None)
            outcome = Accepted.DUPLICATE if isinstance(taken, Duplicate) else Accepted.NEW
        self.accepted[outcome] += 1
        return outcome


async def run(folder: Path, count: int, seed: int, bug: Bug = Bug.NONE) -> Found:
    """Send genuine calls once, then so many forged and replayed ones for each proof, with a new start now and then."""
    with planted(*bug.patches):
        return await _run(folder, count, random.Random(seed))


async def _run(folder: Path, count: int, dice: random.Random) -> Found:
    genuine = {proof: forger.genuine(dice) for proof, forger in FORGERS.items()}
    answers: Counter[str] = Counter()
    wrong: list[str] = []
    for life in range(_LIVES):
        driver = await Sqlite.open(folder / "segue.db", running=RunsIn.INLINE)
        house = _House(driver)
        if life == 0:
            for proof, calls in genuine.items():
                wrong += await _tell(house, proof, calls)
        proofs = [proof for proof in FORGERS for _ in range(count // _LIVES)]
        dice.shuffle(proofs)
        for proof in proofs:
            what, forge = dice.choice(list(FORGERS[proof].forgeries.items()))
            call, later = forge(dice.choice(genuine[proof]), dice)
            house.now = NOW + later
            status = await _post(house.doors[proof], call)
            answers[f"{proof} {status}"] += 1
            if house.accepted[Accepted.NEW] or house.accepted[Accepted.DEAD]:
                wrong.append(f"{proof}: {what}: taken in, and answered {status}")
                house.accepted.clear()
            if status not in (401, 403) and not what.startswith("again"):
                wrong.append(f"{proof}: {what}: answered {status}")
        await driver.close()
    return Found(dict(answers), wrong)


async def _tell(house: _House, proof: str, calls: list[Call]) -> list[str]:
    """Make the genuine calls: otherwise nobody would know that there was anything to forge."""
    answered = {await _post(house.doors[proof], call) for call in calls}
    taken, house.accepted = house.accepted, Counter()
    well = taken == Counter({Accepted.NEW: FORGERS[proof].taken}) and answered <= {200, 202}
    return [] if well else [f"{proof}: what was genuine wasn't taken in: {taken}, answered {answered}"]


async def _post(app: Any, call: Call) -> int:
    """Call a webhook; a header may come twice."""
    status = 0
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in call.headers]
    method, query = "GET" if call.query else "POST", call.query.encode()
    scope = {"type": "http", "method": method, "path": "/", "query_string": query, "headers": headers}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": call.body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)

    await app(scope, receive, send)
    return status


async def over_the_socket(where: str, count: int, seed: int) -> Found:
    """The same for a real gateway behind a real socket, killed and started anew in the middle."""
    dice = random.Random(seed)
    town = Town(2, seed)
    answers: Counter[str] = Counter()
    wrong: list[str] = []
    forgeries = [forge for what, forge in http_forgeries("v1").items() if what != "again, later"]
    async with town.platform():
        plan = Plan(where, town.port, town.callback)
        genuine: list[Call] = []
        for life in range(2):
            gateway = await asyncio.to_thread(start, plan)
            try:
                async with asyncio.timeout(120), http_client(timeout=30.0) as client:
                    await town.ready()
                    if not life:
                        genuine = [await _said(town, client, n) for n in range(4)]
                        await town.gets("chat-0", 4)
                    for _ in range(count // 2):
                        call, _ = dice.choice(forgeries)(dice.choice(genuine), dice)
                        answers[str((await _send(town, client, call)).status_code)] += 1
                    await _say(town, client, f"chat-1-message-{life}")
                    await town.gets("chat-1", life + 1)
            finally:
                await asyncio.to_thread(kill, gateway)
        if len(town.texts("chat-0")) != 4:
            wrong.append(f"chat-0 got {town.texts('chat-0')}")
    # A replay of what was taken in is answered 200, and forty calls needn't have one among them.
    if not {"401"} <= set(answers) <= {"200", "401"}:
        wrong.append(f"answered {answers}")
    return Found(dict(answers), wrong)


async def _said(town: Town, client: httpx2.AsyncClient, n: int) -> Call:
    """A genuine call, answered."""
    body = town._body("chat-0", f"chat-0-message-{n}", text=f"words {n}")
    call = Call(body, tuple(signed(SECRET, body, time.time()).items()))
    assert (await _send(town, client, call)).status_code == 202
    await town.gets("chat-0", n + 1)
    return call


async def _say(town: Town, client: httpx2.AsyncClient, message: str) -> None:
    """Something genuine after all the rest: when it is answered, whatever came before would have been."""
    body = town._body("chat-1", message)
    call = Call(body, tuple(signed(SECRET, body, time.time()).items()))
    assert (await _send(town, client, call)).status_code == 202


async def _send(town: Town, client: httpx2.AsyncClient, call: Call) -> httpx2.Response:
    url = f"http://127.0.0.1:{town.port}/in/http/{ACCOUNT}"
    return await client.post(url, content=call.body, headers=list(call.headers))
