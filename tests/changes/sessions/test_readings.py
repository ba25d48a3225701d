"""Readings: how far each place has read, also in a database that was made before that was written down."""

from importlib.resources import files

from segue.changes.sessions import readings
from segue.core.moves import Consent, Resume
from segue.database.statements import POSTGRES, SQLITE
from tests.changes.world import Engine, World


def derive(world: World) -> list[str]:
    """The statements that derive readings from bindings and tips."""
    [migration] = [f for f in files("segue.database").joinpath("migrations").iterdir() if "readings" in f.name]
    dialect = POSTGRES if world.engine is Engine.POSTGRES else SQLITE
    return [f"insert{text}" for text in dialect.text(migration.read_text("utf-8")).split("\ninsert")[1:]]


async def test_readings_are_derived_from_bindings_and_tips(world: World) -> None:
    ann = await world.person("ann")
    thread, private_lane = await world.thread(ann), await world.dm(ann)
    left = await world.renew(thread, ann, "said here")
    await world.exchange(left, ann, "and this", "yes")
    gone_on = await world.renew(thread, ann, "said here, too")
    await world.renew(thread, ann, "last")
    await world.exchange(gone_on, ann, "said elsewhere", "yes")
    private_one = await world.renew(private_lane, ann, "a secret")
    brought = await world.renew(private_lane, ann, "a secret that was told")
    world.clock.passes(1)
    await world.store.move(Resume(thread, brought, consent=Consent.GIVEN), ann)

    async def unread() -> list[int]:
        sessions = (left, gone_on, private_one, brought)
        return [(await world.store.driver.read(readings.unread, thread.address, id)).said for id in sessions]

    assert await unread() == [0, 2, 1, 0]
    await world.raw("delete from readings")
    assert await unread() == [3, 3, 1, 0]
    for statement in derive(world):
        await world.raw(statement)
    assert await unread() == [0, 2, 1, 0]
