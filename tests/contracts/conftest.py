"""An adapter with two ways in sends in one way: by the second way `make test` tries only what comes in."""

import pytest

from segue.testing.contracts import ChangeContract, DeletionContract, QuoteContract, WebhookContract
from segue.testing.contracts.arrivals import ArrivalContract

_COMES_IN = (ArrivalContract, ChangeContract, DeletionContract, QuoteContract, WebhookContract)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave what is sent by the second way to `make drill`."""
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("second_way"):
            owner = next(cls for cls in item.cls.__mro__ if item.originalname in vars(cls))
            if owner not in _COMES_IN:
                item.add_marker(pytest.mark.full)
