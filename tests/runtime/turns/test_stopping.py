"""A gateway that stops begins no more turns, and nothing of it lives on."""

import asyncio
from pathlib import Path
from typing import Any

from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import Arrival, Speaker, Text
from segue.core.people import UNBOUNDED
from segue.testing import WhatsApp
from tests.changes.world import Engine, raw_sql
from tests.in_process import gateway_on


def arrival(number: int) -> Arrival:
    who = Identity("whatsapp", "main", f"p{number}")
    place = Place(Address("whatsapp", "main", chat=who.user), Kind.DM)
    return Arrival(place, f"m{number}", Speaker(who), (Text(f"message {number}"),), 0.0)


async def test_no_turn_begins_once_a_gateway_stops(tmp_path: Path) -> None:
    begun: list[str] = []
    both, go_on = asyncio.Event(), asyncio.Event()

    async def answer(text: str) -> str:
        begun.append(text)
        if len(begun) == 2:
            both.set()
        await go_on.wait()
        return f"heard {text}"

    more: dict[str, Any] = {"slots": 2, "limits": UNBOUNDED, "grace": 60.0, "lease": 60.0}
    async with gateway_on(tmp_path, answer, WhatsApp(), **more) as gateway:
        for number in range(12):
            await gateway.accept(arrival(number))
        await both.wait()
        stopping = asyncio.create_task(gateway.stop())
        await asyncio.sleep(0)
        go_on.set()
        await stopping
        assert len(begun) == 2
        assert [
            task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith(("session", "turn"))
        ] == []
    raw = await raw_sql(Engine.SQLITE, str(tmp_path / "segue.db"))
    try:
        assert await raw("select count(*) from turns where outcome is null") == [(10,)]
        assert await raw("select count(*) from sessions where holder is not null") == [(0,)]
    finally:
        await raw.close()
