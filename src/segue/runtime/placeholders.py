"""Placeholders whose ids were lost: sent by a process that died, or in a call that broke off."""

from segue.changes.exchange import deliveries
from segue.core.contracts.adapters import Adapter, KnowsPlaceholders, ReadsBack
from segue.core.messages import Delivery
from segue.runtime.retrying import Patient


async def lost_placeholder(store: Patient, adapter: Adapter, delivery: Delivery) -> str | None:
    """The placeholder that an earlier attempt at a delivery left, if its platform lets it be found."""
    if isinstance(adapter, ReadsBack):
        return await adapter.find(delivery.placeholder)
    if isinstance(adapter, KnowsPlaceholders):
        for message in await store.read(deliveries.unknown, delivery, tuple(adapter.ids_after(delivery))):
            if await adapter.is_placeholder(delivery, message):
                return message
    return None
