"""The base of all contracts of adapters, and the deliveries that they send."""

from typing import ClassVar
from uuid import uuid4

import msgspec
import pytest

from segue.core.contracts.adapters import (
    EditsMessages,
    OpensThreads,
    RenamesThreads,
    ShowsSteps,
    ShowsTyping,
    TakesWebhooks,
    Whispers,
)
from segue.core.lanes import Address
from segue.core.messages import Delivery
from segue.testing.harness import Harness

_ABILITIES: tuple[type, ...] = (
    OpensThreads, RenamesThreads, EditsMessages, ShowsSteps, ShowsTyping, TakesWebhooks, Whispers
)  # fmt: skip


class Contract:
    """Takes its `harness` from the test class, and sees to it that no ability goes untested."""

    ability: ClassVar[type | None] = None
    """The ability of adapters to which this contract applies."""
    pytestmark = pytest.mark.asyncio

    @pytest.fixture
    def harness(self) -> Harness:
        """The harness of the adapter; override it."""
        raise NotImplementedError("Override the fixture `harness`: it returns the harness of your adapter.")

    async def test_each_ability_has_its_contract(self, harness: Harness) -> None:
        adapter = harness.adapter()
        has = {ability.__name__ for ability in _ABILITIES if isinstance(adapter, ability)}
        bases = (vars(base).get("ability") for base in type(self).__mro__)
        tested = {ability.__name__ for ability in bases if ability is not None}
        assert has == tested, f"the adapter has {sorted(has)}, but the contracts here are those of {sorted(tested)}"


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
