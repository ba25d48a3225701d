"""Cases for `make drill` alone: the rest of a matrix of which `make test` runs a sample.

A case is marked `full`; `pytest --full` runs what is marked, and nothing else.
"""

from typing import Any

import pytest
from _pytest.mark import ParameterSet


def full(*values: Any) -> ParameterSet:
    """A case of a parametrised test that `make test` leaves out."""
    return pytest.param(*values, marks=pytest.mark.full)


on_sqlite = pytest.mark.parametrize("database", ["sqlite", full("postgres")], indirect=True)
"""For a test of a gateway that takes long: on PostgreSQL only at full length."""
