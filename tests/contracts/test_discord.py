"""The Discord adapter keeps the contracts, with simcord's Discord behind it."""

from collections.abc import AsyncIterator

import pytest

from segue.testing.contracts import (
    ChangeContract,
    DeletionContract,
    EditContract,
    QuoteContract,
    ThreadContract,
    TypingContract,
)
from tests.adapters.discord import DiscordHarness
from tests.servers.discord import local_discord


class TestDiscord(ThreadContract, EditContract, TypingContract, ChangeContract, DeletionContract, QuoteContract):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[DiscordHarness]:
        async with local_discord() as town:
            harness = DiscordHarness(town)
            yield harness
            await harness.close()
