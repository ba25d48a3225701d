"""The base of all contracts of adapters, and their deliveries."""

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
    """Takes its `harness` from the test class, and checks that every ability is tested."""

    ability: ClassVar[type | None] = None
    """The ability of adapters that this contract tests."""
    pytestmark = pytest.mark.asyncio

    @pytest.fixture
    def harness(self) -> Harness:
        """Return the harness of the adapter; override it."""
        raise NotImplementedError("Override the fixture `harness`: it returns the harness of your adapter.")

    async def test_each_ability_has_its_contract(self, harness: Harness) -> None:
        adapter = harness.adapter()
        has = {ability.__name__ for ability in _ABILITIES if isinstance(adapter, ability)}
        bases = (vars(base).get("ability") for base in type(self).__mro__)
        tested = {ability.__name__ for ability in bases if ability is not None}
        assert has == tested, f"the adapter has {sorted(has)}, but the contracts here are those of {sorted(tested)}"


def fresh_key() -> str:
    """Return a key that no earlier run used."""
    return f"contract/{uuid4().hex}"


def a_delivery(address: Address, text: str) -> Delivery:
    """Return a delivery before its first attempt."""
    key = fresh_key()
    return Delivery(id=key, address=address, session="contract", entry=1, text=text, key=key, attempt=1)


def after_a_crash(delivery: Delivery) -> Delivery:
    """Return the delivery for the next replica after a crash, when the outcome of the first attempt is unknown."""
    return msgspec.structs.replace(delivery, attempt=delivery.attempt + 1, doubtful=delivery.doubtful + 1)
