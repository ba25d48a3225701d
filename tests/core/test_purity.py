"""The core is pure: what import-linter can't see, because it needs no import."""

import ast
from pathlib import Path

from segue import core

CORE = Path(core.__file__).parent
MODULES = sorted(CORE.rglob("*.py"))
WAITING = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
IMPURE = {"open", "print", "input", "eval", "exec", "__import__", "breakpoint", "now", "utcnow", "today"}


def wrong(module: str, tree: ast.AST) -> list[str]:
    """What a module of the core does though it mustn't."""
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {f.id if isinstance(f, ast.Name) else f.attr for f in called if isinstance(f, ast.Name | ast.Attribute)}
    waits = any(isinstance(node, WAITING) for node in ast.walk(tree)) and not module.startswith("contracts/")
    return [f"{module} calls {name}" for name in sorted(names & IMPURE)] + [f"{module} waits"] * waits


def test_no_module_calls_a_clock_or_a_file_and_only_the_contracts_speak_of_waiting() -> None:
    assert [each for path in MODULES for each in wrong(str(path.relative_to(CORE)), ast.parse(path.read_bytes()))] == []


def test_what_a_module_must_not_do_is_found() -> None:
    tree = ast.parse("async def look():\n    print(datetime.now())")
    assert wrong("lanes.py", tree) == ["lanes.py calls now", "lanes.py calls print", "lanes.py waits"]
    assert wrong("contracts/agents.py", ast.parse("async def look(): ...")) == []
