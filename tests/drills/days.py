"""A gateway that starts with a clock that is ahead: nothing is old before a gateway ran for so many days."""

from msgspec.structs import replace

from segue.changes.exchange import letters
from segue.changes.run_days import DAY
from segue.core.contracts.adapters import Accepted
from segue.core.settings import Retention
from segue.runtime.forgetting import Retaining
from segue.runtime.gateway import Gateway
from segue.runtime.lifecycle.failures import Failures
from segue.testing import EchoAgent, HandClock
from segue.testing.waits import Changes
from tests.drills.planting import Bug, planted
from tests.drills.room import Wall, said, settings
from tests.in_process import gateway_on

_KEPT = 7
"""Days for which a session is kept."""
_NOON = 20_000.5 * DAY
_HELLO = said("room", "hello")


async def run(where: str, ahead: int, bug: Bug = Bug.NONE) -> list[str]:
    """Start a gateway with a clock that is so many days ahead, then with one that is right; returns what is wrong."""
    wrong: list[str] = []
    changes = Changes()
    wall, clock = Wall(lambda _what, _of: changes.tell()), HandClock(_NOON)

    async def start(days: float) -> bool:
        """Start a gateway for a moment, that many days after the one before; returns whether it remembers."""
        clock.passes(days * DAY)
        more = replace(settings(), retention=Retention(days=_KEPT))
        async with gateway_on(where, EchoAgent(), wall, settings=more, clock=clock) as gateway:
            if not wall.posts:
                await gateway.accept(_HELLO)
                await changes.until(lambda: wall.answers("hello") or None, lambda: "it was never answered")
            return await _remembers(gateway, clock)

    with planted(*bug.patches):
        if not await start(0.0):
            wrong.append("a session that was just used is forgotten")
        if not await start(ahead):
            wrong.append(f"a start {ahead} days ahead forgets what was said")
        if not await start(-ahead):
            wrong.append("it is forgotten once the clock is right again")
        if all([await start(1.0) for _ in range(_KEPT + 1)]):
            wrong.append(f"it is kept for ever, not for {_KEPT} days")
    return wrong


async def _remembers(gateway: Gateway, clock: HandClock) -> bool:
    """Forget all that is old; returns whether a message is known, in its session and by its key."""
    await Retaining(gateway.patient, gateway.settings, clock, Failures()).once()
    await gateway.store.driver.write(letters.forget, clock())
    person = await gateway.store.person(_HELLO.speaker.identity)
    session = await gateway.store.bound(await gateway.store.lane(_HELLO.place, person))
    words = await gateway.store.path(session.id) if session is not None else []
    known = await gateway.accept(_HELLO) is Accepted.DUPLICATE
    return known and bool(words)
