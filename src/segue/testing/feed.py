"""What a platform has to tell an account: in order, again and again until it is acknowledged."""

from collections.abc import AsyncIterator

from segue.core.values import Value
from segue.testing.waits import Changes


class Parcel(Value, frozen=True):
    """One thing told: its place in the order, the raw body, and the proof of who sent it."""

    number: int
    body: bytes
    proof: str


class Feed:
    """Parcels that nobody has acknowledged yet."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._waiting: dict[int, Parcel] = {}
        self._told = 0
        self.open = True

    def put(self, body: bytes, proof: str) -> None:
        """Something new to tell, or something old once more."""
        self._told += 1
        self._waiting[self._told] = Parcel(self._told, body, proof)
        self._changes.tell()

    def acknowledge(self, parcel: Parcel) -> None:
        """It may be forgotten."""
        self._waiting.pop(parcel.number, None)
        self._changes.tell()

    @property
    def unacknowledged(self) -> int:
        """How many parcels would be told again to whoever connects next."""
        return len(self._waiting)

    async def parcels(self) -> AsyncIterator[Parcel]:
        """A connection: all that waits, the oldest first, then what comes."""
        last = 0
        while True:
            number = next((n for n in self._waiting if n > last), None) if self.open else None
            if number is None:
                await self._changes.next()
            else:
                last = number
                yield self._waiting[number]
