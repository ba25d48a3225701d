"""The core is pure: what import-linter can't see, because it needs no import."""

import ast
from pathlib import Path

import pytest

from segue import core

MODULES = sorted(Path(core.__file__).parent.rglob("*.py"))
IMPURE = {"open", "print", "input", "eval", "exec", "__import__", "breakpoint", "now", "utcnow", "today"}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: "/".join(path.with_suffix("").parts[-2:]))
def test_a_module_calls_no_clock_and_no_file(module: Path) -> None:
    called = [node.func for node in ast.walk(ast.parse(module.read_bytes())) if isinstance(node, ast.Call)]
    names = {f.id if isinstance(f, ast.Name) else f.attr for f in called if isinstance(f, ast.Name | ast.Attribute)}
    assert not names & IMPURE


@pytest.mark.parametrize("module", MODULES, ids=lambda path: "/".join(path.with_suffix("").parts[-2:]))
def test_only_the_contracts_speak_of_waiting(module: Path) -> None:
    waiting = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    found = [node for node in ast.walk(ast.parse(module.read_bytes())) if isinstance(node, waiting)]
    assert not found or module.parent.name == "contracts"
