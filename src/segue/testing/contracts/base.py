"""What all contracts of adapters stand on."""

from typing import ClassVar

import pytest

from segue.core.contracts.adapters import EditsMessages, OpensThreads, ShowsTyping, TakesWebhooks
from segue.testing.harness import Harness

_ABILITIES: tuple[type, ...] = (OpensThreads, EditsMessages, ShowsTyping, TakesWebhooks)


class Contract:
    """Takes its `harness` from the test class, and sees to it that no ability goes untested."""

    ability: ClassVar[type | None] = None
    """What an adapter has to which this contract applies."""
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
