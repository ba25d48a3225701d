"""How long each kind of agent takes to be there, in a fresh process."""

import statistics
import subprocess
import sys
from collections.abc import AsyncIterator
from importlib.util import find_spec

from bench.databases import Databases
from bench.skipped import Skipped
from bench.table import Line, milliseconds

_TIMES = 5
_KINDS = {
    "built-in": "from segue.agents.builtin.agent import BuiltinKeys; BuiltinKeys().agent()",
    "a function": "from segue.agents.given import as_agent\nasync def f(text: str) -> str: return text\nas_agent(f)",
    "a model's keys alone": "from segue.agents.models.keys import ModelKeys; ModelKeys('ollama:small')",
    "pydantic-ai": "from pydantic_ai import Agent\nfrom segue.agents.given import as_agent; as_agent(Agent('test'))",
    "a model": "from segue.agents.models.keys import ModelKeys; ModelKeys('ollama:small').agent()",
}
"""What makes an agent of each kind, imports and all."""


async def agents(_: Databases) -> AsyncIterator[Line]:
    """From nothing to an agent that can answer."""
    if find_spec("pydantic_ai") is None:
        raise Skipped("pydantic-ai isn't installed")
    for kind, code in _KINDS.items():
        p50 = statistics.median(_make(code) for _ in range(_TIMES))
        yield Line("agents", f"import and make: {kind}", milliseconds(p50))


def _make(code: str) -> float:
    timed = f"import time; began = time.perf_counter()\n{code}\nprint(time.perf_counter() - began)"
    return float(subprocess.run([sys.executable, "-c", timed], check=True, capture_output=True).stdout)
