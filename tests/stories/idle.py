"""The story of a conversation that ends by itself after a day, and to which /undo goes back."""

from collections.abc import Awaitable, Callable
from typing import Any

from segue.core.resets import Policies, Policy, When
from segue.core.settings import Settings
from segue.testing import HandClock

IDLE: dict[str, Any] = {"routing": Settings(resets=Policies(Policy(When.IDLE, notice=True))), "sweep": 0.02}
"""Settings of a gateway in which it can be told; its agent is `REMEMBERS`."""


async def ends_and_comes_back(
    clock: HandClock, says: Callable[[str], Awaitable[object]], reads: Callable[[int], Awaitable[list[str]]]
) -> None:
    """Tell it of somebody who says things in a chat, and reads all that came there once it is so much."""
    await says("I am Ann")
    assert await reads(1) == ["I am Ann"]
    clock.passes(25 * 3600.0)
    await says("do you know me?")
    [_, notice, answer] = await reads(3)
    assert notice.startswith("This is a new session: nobody had written here for a day.")
    assert answer == "do you know me?"
    await says("/undo")
    [*_, undone, again] = await reads(5)
    assert undone.startswith("Took back the reset.")
    assert again == "I am Ann | do you know me?"
