"""The list of slow tests is true, and what isn't in it is quick."""

import ast
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import forge, slow

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", slow.REASONS)
def test_each_that_is_listed_is_there(name: str) -> None:
    file, _, test = name.partition("::")
    tree = ast.parse((ROOT / file).read_text())
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_whoever_works_too_long_needs_a_reason() -> None:
    slow.judge("tests/test_slow.py::quick", slow.BOUND)
    slow.judge(f"{next(iter(slow.REASONS))}[sqlite]", 2 * slow.BOUND)
    with pytest.raises(slow.TooSlow, match=rf"{slow.BOUND + 0.1:g} s of work"):
        slow.judge("tests/test_slow.py::slow[sqlite]", slow.BOUND + 0.1)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here to tell what others have worked")
def test_what_is_forked_for_a_test_counts() -> None:
    """Idle time doesn't: what an earlier test left behind may end meanwhile, but not each time."""
    forge.start(_works, 0.0).join()
    assert min(_work(lambda: time.sleep(0.05)) for _ in range(5)) < 0.05
    assert _work(lambda: forge.start(_works, 0.3).join()) >= 0.3


def _work(does: Callable[[], None]) -> float:
    before = slow.work()
    does()
    return slow.work() - before


def _works(seconds: float) -> None:
    while time.process_time() < seconds:
        pass
