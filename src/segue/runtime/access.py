"""Access: what a person is to the lane that they speak in, decided before anything else is."""

from __future__ import annotations

from segue.core.access import Standing
from segue.core.contracts import Ids, Transaction
from segue.core.lanes import Kind, Lane
from segue.core.messages import Arrival
from segue.core.values import Moment, Value
from segue.runtime.settings import AccountSettings, GatewaySettings
from segue.store.persons import Met


class Pass(Value, frozen=True):
    """They may speak here."""

    standing: Standing


class Refuse(Value, frozen=True):
    """They may not; perhaps they are told something."""

    notice: str | None = None


class Access:
    """Tells hosts and participants from strangers."""

    def __init__(self, settings: GatewaySettings, ids: Ids) -> None:
        self._settings = settings
        self._ids = ids
        self._hosts = frozenset(settings.hosts)

    def judge(self, arrival: Arrival, met: Met, lane: Lane, at: Moment) -> Transaction[Pass | Refuse]:  # noqa: ARG002
        """Whether this arrival may come in, and as whose."""
        yield from ()
        if arrival.speaker.identity in self._hosts:
            return Pass(Standing.HOST)
        address = lane.address
        account = self._settings.accounts.get((address.platform, address.account), AccountSettings())
        known = (
            arrival.speaker.identity.user in account.allow
            if arrival.place.kind is Kind.DM
            else address.chat in account.allow_groups
        )
        return Pass(Standing.PARTICIPANT) if account.public or known else Refuse()
