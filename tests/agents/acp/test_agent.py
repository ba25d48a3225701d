"""The agent for programs that speak ACP keeps what every agent keeps."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from segue.agents.acp.agent import AcpAgent
from segue.testing.contracts import RecallContract, StateContract, SteerContract, ToolContract
from tests.agents.acp.keys import program


class TestAcp(RecallContract, StateContract, SteerContract, ToolContract):
    recall = "all"
    errand = "tool"

    @pytest.fixture
    async def agent(self, tmp_path: Path) -> AsyncIterator[AcpAgent]:
        agent = AcpAgent(program(tmp_path))
        # What runs beside it belongs to its process, not to a turn.
        await agent._running()
        yield agent
        await agent.close()
