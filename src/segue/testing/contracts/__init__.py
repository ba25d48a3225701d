"""The contracts of adapters and agents, as pytest classes: subclass those that fit, and override the fixture.

class TestMine(ThreadContract, EditContract):
    @pytest.fixture
    def harness(self) -> Harness:
        return MyHarness()
"""

import pytest

# A failing assert shows its values only in modules that are imported after this.
pytest.register_assert_rewrite(
    *(f"{__name__}.{part}" for part in ("adapters", "agents", "arrivals", "base", "sending"))
)

from segue.testing.contracts.adapters import (  # noqa: E402
    AdapterContract,
    ChangeContract,
    DeletionContract,
    EditContract,
    QuoteContract,
    RenameContract,
    StepContract,
    ThreadContract,
    TypingContract,
    WebhookContract,
    WhisperContract,
)
from segue.testing.contracts.agents import (  # noqa: E402
    AgentContract,
    RecallContract,
    StateContract,
    SteerContract,
    ToolContract,
)

__all__ = [
    "AdapterContract",
    "AgentContract",
    "ChangeContract",
    "DeletionContract",
    "EditContract",
    "QuoteContract",
    "RecallContract",
    "RenameContract",
    "StateContract",
    "SteerContract",
    "StepContract",
    "ThreadContract",
    "ToolContract",
    "TypingContract",
    "WebhookContract",
    "WhisperContract",
]
