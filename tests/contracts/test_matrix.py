"""The Matrix adapter keeps the contracts, on a real homeserver."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from segue.testing.contracts import (
    ChangeContract,
    DeletionContract,
    EditContract,
    QuoteContract,
    ThreadContract,
    TypingContract,
)
from tests.adapters.matrix import MatrixHarness
from tests.servers.homeserver import Synapse


class TestMatrix(ThreadContract, EditContract, TypingContract, ChangeContract, DeletionContract, QuoteContract):
    @pytest.fixture
    async def harness(self, synapse: Synapse, tmp_path: Path) -> AsyncIterator[MatrixHarness]:
        harness = await MatrixHarness.make(synapse, tmp_path)
        harness.files = harness.shelf
        yield harness
        await harness.close()
