"""Retention: how long the host keeps what was said.

Law: an account's own number beats that of the kind of place, which beats the default; 0 keeps it for ever.
"""

from typing import Annotated

from msgspec import Meta

from segue.core.lanes import Kind, Lane
from segue.core.values import Value

Days = Annotated[int, Meta(ge=0, le=36_500)]


class Retention(Value, frozen=True):
    """[retention]: days after its last message that a session is forgotten; 0 is never."""

    days: Days = 0
    dm: Days | None = None
    group: Days | None = None
    thread: Days | None = None

    def of(self, lane: Lane, kind: Kind, account: int | None) -> int:
        """The days that hold in a lane; `account` is what its account says."""
        own = self.thread if lane.address.thread else self.dm if kind is Kind.DM else self.group
        return next((days for days in (account, own) if days is not None), self.days)
