"""The contracts of adapters and agents, as pytest classes: a test file subclasses what fits and gives a fixture.

class TestMine(ThreadContract, EditContract):
    @pytest.fixture
    def harness(self) -> Harness:
        return MyHarness()
"""

from segue.testing.contracts.adapters import (
    AdapterContract,
    ChangeContract,
    EditContract,
    QuoteContract,
    ThreadContract,
    TypingContract,
    WebhookContract,
)
from segue.testing.contracts.agents import AgentContract, RecallContract, SteerContract, ToolContract

__all__ = [
    "AdapterContract",
    "AgentContract",
    "ChangeContract",
    "EditContract",
    "QuoteContract",
    "RecallContract",
    "SteerContract",
    "ThreadContract",
    "ToolContract",
    "TypingContract",
    "WebhookContract",
]
