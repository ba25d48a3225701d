"""The Matrix adapter keeps the contracts, on a real homeserver."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from segue.testing.contracts import (
    AdapterContract,
    ChangeContract,
    DeletionContract,
    EditContract,
    QuoteContract,
    ThreadContract,
    TypingContract,
)
from tests.adapters.encrypting import EncryptedHarness
from tests.adapters.matrix import MatrixHarness
from tests.servers.homeserver import Synapse


class TestMatrix(ThreadContract, EditContract, TypingContract, ChangeContract, DeletionContract, QuoteContract):
    @pytest.fixture
    async def harness(self, synapse: Synapse, tmp_path: Path) -> AsyncIterator[MatrixHarness]:
        harness = await MatrixHarness.make(synapse, tmp_path)
        harness.files = harness.shelf
        yield harness
        await harness.close()


class TestEncryptedMatrix:
    """Contracts that encryption could break, of which all would take two minutes more."""

    test_order_is_kept = AdapterContract.test_order_is_kept
    test_a_redelivery_is_told = AdapterContract.test_a_redelivery_is_told
    test_the_agent_never_hears_itself = AdapterContract.test_the_agent_never_hears_itself
    test_what_was_accepted_but_not_acknowledged_comes_again = (
        AdapterContract.test_what_was_accepted_but_not_acknowledged_comes_again
    )
    test_the_file_of_a_stranger_is_not_fetched = AdapterContract.test_the_file_of_a_stranger_is_not_fetched
    test_the_longest_text_is_taken_whole = AdapterContract.test_the_longest_text_is_taken_whole
    test_a_crash_after_sending_does_what_the_sending_class_says = (
        AdapterContract.test_a_crash_after_sending_does_what_the_sending_class_says
    )

    @pytest.fixture
    async def harness(self, synapse: Synapse, tmp_path: Path) -> AsyncIterator[EncryptedHarness]:
        harness = await EncryptedHarness.make(synapse, tmp_path)
        harness.files = harness.shelf
        yield harness
        await harness.close()
