"""An ACP agent: until it answers first, ten sessions of it on one process, and the memory of that process."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from pathlib import Path

from bench.databases import Databases
from bench.table import Line, Target, milliseconds
from segue.agents.acp.agent import AcpAgent
from segue.core.contracts.agents import Work
from segue.core.messages import Text
from segue.core.transcripts import Author, Draft, Role
from segue.core.values import SessionId
from tests.agents.acp.keys import program

_SESSIONS = 10
_TIMES = 20


async def acp(databases: Databases) -> AsyncIterator[Line]:
    """Turns of a small agent on the SDK, without a gateway around it."""
    folder = databases.folder / "acp"
    folder.mkdir()
    agent = AcpAgent(program(folder, settle=0.1))
    try:
        first = await _turn(agent, 0)
        yield Line("acp", "start a process, open a session, first answer", milliseconds(first))
        alone = _memory(agent)
        session = statistics.median([await _turn(agent, n) for n in range(_TIMES)])
        yield Line("acp", "a session more, first answer", milliseconds(session))
        began = time.perf_counter()
        await asyncio.gather(*(_turn(agent, n) for n in range(_SESSIONS)))
        yield Line("acp", f"{_SESSIONS} sessions more at once", milliseconds(time.perf_counter() - began))
        held, beside = _memory(agent), f"one session {alone / 1e6:.1f} MB"
        what = f"memory of its process, {1 + _TIMES + _SESSIONS} sessions"
        yield Line("acp", what, f"{held / 1e6:.1f} MB", beside, held / alone, Target("<=", 1.2))
        hung = asyncio.create_task(_turn(agent, 0, "hang"))
        p50 = statistics.median([await _turn(agent, n) for n in range(1, _TIMES)])
        beside, what = f"otherwise {milliseconds(session)}", "a session while another of the process hangs"
        yield Line("acp", what, milliseconds(p50), beside, p50 / session, Target("<", 2))
        hung.cancel()
        await asyncio.wait([hung])
    finally:
        await agent.close()


async def _turn(agent: AcpAgent, session: int, text: str = "hello") -> float:
    """Seconds that the first turn of a session takes."""
    asked = Draft(Author(Role.PERSON, "ann", "Ann"), (Text(text),))
    began = time.perf_counter()
    async for _ in agent.answer(Work(SessionId(f"s{session}"), 1, "", (), (asked,))):
        """Only the time counts."""
    return time.perf_counter() - began


def _memory(agent: AcpAgent) -> int:
    """Bytes that the agent's process holds."""
    assert agent.process is not None
    status = Path(f"/proc/{agent.process.pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024
