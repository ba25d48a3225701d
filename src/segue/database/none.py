"""No database: what a gateway has until somebody gives it one. Its methods take what any driver's take."""

# ruff: noqa: ARG002 -- it refuses whatever it is given

from collections.abc import Callable
from typing import NoReturn, ParamSpec, TypeVar

from segue.core.contracts.database import Transaction
from segue.errors import Invalid

P = ParamSpec("P")
T = TypeVar("T")


class Absent:
    """A driver that can run nothing."""

    copies = ()

    async def write(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """There is nowhere to write to."""
        _refuse()

    async def read(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """There is nothing to read."""
        _refuse()

    async def scrub(self) -> bool:
        """There is nothing to clean."""
        _refuse()

    async def damage(self) -> str:
        """There is nothing to look through."""
        _refuse()

    async def hint(self, topic: str) -> None:
        """There is nobody to wake."""
        _refuse()

    def listen(self, heard: Callable[[str], None]) -> Callable[[], None]:
        """There is nobody to hear."""
        _refuse()

    async def close(self) -> None:
        """There is nothing to let go of."""


def _refuse() -> NoReturn:
    fix = "Give it one, `Gateway(store, agent)`, or let `segue serve MODULE:NAME` run it."
    raise Invalid("gateway", "it has no store", fix)
