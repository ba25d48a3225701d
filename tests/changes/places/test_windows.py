"""Windows: one that another replica serves is looked at too, and what is said there is sent by who serves it."""

from segue.changes.exchange import replicas
from segue.changes.places import windows
from segue.core.lanes import Address
from tests.changes.exchange.test_deliveries import HERE, THERE, send, take, texts
from tests.changes.world import World


async def elsewhere(world: World, me: str) -> list[Address]:
    return await world.store.driver.read(windows.elsewhere, HERE.platform, HERE.account, me)


async def test_what_is_said_in_a_window_is_sent_by_who_serves_it(world: World) -> None:
    write = world.store.driver.write
    for me in ("one", "two"):
        await write(replicas.join, me, 60.0)
    await write(windows.tell, "two", [HERE])
    assert await elsewhere(world, "one") == [HERE]
    assert await elsewhere(world, "two") == []
    await send(world, HERE, "1")
    await send(world, THERE, "2")
    assert texts(await take(world, "one")) == ["2"]
    assert texts(await take(world, "two")) == ["1"]


async def test_a_window_on_several_replicas_is_served_by_each(world: World) -> None:
    write = world.store.driver.write
    for me in ("one", "two"):
        await write(replicas.join, me, 60.0)
        await write(windows.tell, me, [HERE, THERE])
        await write(windows.tell, me, [HERE])
    await send(world, HERE, "1")
    assert texts(await take(world, "one")) == ["1"]
    assert await elsewhere(world, "three") == [HERE]


async def test_nobody_looks_at_what_a_dead_replica_served(world: World) -> None:
    write = world.store.driver.write
    await write(replicas.join, "dead", -1.0)
    await write(replicas.join, "alive", 60.0)
    await write(windows.tell, "dead", [HERE])
    await write(replicas.beat, "alive", 60.0)
    assert await elsewhere(world, "alive") == []
    assert await world.count("windows") == 0
    await send(world, HERE, "1")
    assert texts(await take(world, "alive")) == ["1"]
