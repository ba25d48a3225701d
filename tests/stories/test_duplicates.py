"""A platform delivers a message twice: it is one message."""

import asyncio

from tests.drills.gateways import start
from tests.forge import kill
from tests.ports import free_port
from tests.stories.conftest import Stage


async def test_the_same_message_twice_is_answered_once_also_after_a_restart(stage: Stage) -> None:
    town = stage.town
    async with stage.gateway():
        assert (await town.call("ann", "ann-message-1")).json() == {"accepted": True}
        again = await town.call("ann", "ann-message-1")
        assert (again.status_code, again.json()) == (200, {"accepted": False, "duplicate": True})
        await town.hears("ann", "I am ann-message-1")
    async with stage.gateway():
        assert (await town.call("ann", "ann-message-1")).json()["duplicate"]
        await town.call("ann", "ann-message-2")
        await town.hears("ann", "I am ann-message-2")
    assert len(town.texts("ann")) == 2


async def test_the_same_message_on_another_replica_is_answered_once(stage: Stage) -> None:
    town, port = stage.town, free_port()
    other = await asyncio.to_thread(start, stage.plan(port=port))
    try:
        async with stage.gateway(pace=0.1):
            calls = [town.call("ann", f"ann-message-{n}", port=where) for n in range(10) for where in (port, town.port)]
            answers = await asyncio.gather(*calls)
            assert sorted(answer.status_code for answer in answers) == [200] * 10 + [202] * 10
            for n in range(10):
                await town.hears("ann", f"I am ann-message-{n}")
            answered = [message for call in town.calls("ann") for message in call["answers"]]
            assert sorted(answered) == [f"ann-message-{n}" for n in range(10)]
    finally:
        await asyncio.to_thread(kill, other)
