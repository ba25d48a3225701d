"""Deliveries for the contracts, and what becomes of them when a process dies."""

from uuid import uuid4

import msgspec

from segue.core.lanes import Address
from segue.core.messages import Delivery


def fresh_key() -> str:
    """A key that no run before has used."""
    return f"contract/{uuid4().hex}"


def a_delivery(address: Address, text: str) -> Delivery:
    """A message that is to be sent for the first time."""
    key = fresh_key()
    return Delivery(id=key, address=address, session="contract", entry=1, text=text, key=key, attempt=1)


def after_a_crash(delivery: Delivery) -> Delivery:
    """The same delivery as the next replica gets it: nobody knows whether the first attempt did anything."""
    return msgspec.structs.replace(delivery, attempt=delivery.attempt + 1, doubtful=delivery.doubtful + 1)
