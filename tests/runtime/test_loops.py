"""No loop can turn for ever without letting anybody else go on: each path through it waits."""

import ast
import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import segue
from segue.runtime.replica import Pause

SOURCE = Path(segue.__file__).parent / "runtime"
Ends = set[tuple[str, bool]]
"""How a path through some statements ends, and whether it has waited by then."""


def waits(node: ast.AST | None) -> bool:
    """Return whether an expression waits whichever way it is evaluated."""
    match node:
        case None | ast.Lambda():
            return False
        case ast.Await():
            return True
        case ast.IfExp():
            return waits(node.test) or (waits(node.body) and waits(node.orelse))
        case ast.BoolOp():
            return waits(node.values[0])
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return waits(node.generators[0].iter)
        case _:
            return any(waits(child) for child in ast.iter_child_nodes(node))


def ends(block: Sequence[ast.stmt], *, waited: bool) -> Ends:
    """Return the ends of all paths through a block."""
    found, states = Ends(), {waited}
    for statement in block:
        after = {end for state in states for end in _ends(statement, waited=state)}
        found |= {end for end in after if end[0] != "falls"}
        states = {state for how, state in after if how == "falls"}
    return found | {("falls", state) for state in states}


LEAPS = {ast.Return: "leaves", ast.Raise: "leaves", ast.Continue: "turns", ast.Break: "breaks"}


def _ends(statement: ast.stmt, *, waited: bool) -> Ends:
    found = {(LEAPS.get(type(statement), "falls"), waited or waits(statement))}
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            found = {("falls", waited)}
        case ast.If(test=test):
            # All of `a and b` was looked at where it is true.
            whole = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and any(map(waits, test.values))
            found = ends(statement.body, waited=waited or whole or waits(test))
            found |= ends(statement.orelse, waited=waited or waits(test))
        case ast.Match(subject=subject):
            found = set().union(*(ends(case.body, waited=waited or waits(subject)) for case in statement.cases))
        case ast.While() | ast.For() | ast.AsyncFor():
            found = _ends_of_loop(statement, waited=waited)
        case ast.With() | ast.AsyncWith():
            found = ends(statement.body, waited=waited or any(waits(item) for item in statement.items))
        case ast.Try():
            found = _ends_of_try(statement, waited=waited)
        case _:
            """It is done, whatever is in it."""
    return found


def _ends_of_loop(loop: ast.While | ast.For | ast.AsyncFor, *, waited: bool) -> Ends:
    asks = isinstance(loop, ast.AsyncFor) or waits(loop.test if isinstance(loop, ast.While) else loop.iter)
    inner = ends(loop.body, waited=waited or asks)
    after = Ends() if endless(loop) else {("falls", waited or asks)}
    after |= {("falls", state) for how, state in inner if how == "breaks"}
    return after | {end for end in inner if end[0] == "leaves"}


def _ends_of_try(statement: ast.Try, *, waited: bool) -> Ends:
    whole = Ends()
    for how, state in ends(statement.body, waited=waited):
        whole |= ends(statement.orelse, waited=state) if how == "falls" else {(how, state)}
    for handler in statement.handlers:
        # An error may come before anything was waited for.
        whole |= ends(handler.body, waited=waited)
    last = ends(statement.finalbody, waited=False)
    if ("falls", False) in last:
        return whole
    return {(how, True) for how, _ in whole} if ("falls", True) in last else last


def endless(loop: ast.stmt) -> bool:
    """Return whether nothing but a statement in it ends a loop."""
    return isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant)


def functions(tree: ast.AST) -> Iterator[ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef))


def own_loops(block: Sequence[ast.AST]) -> Iterator[ast.While]:
    """Return the loops of a function, without those of functions in it."""
    for node in block:
        if isinstance(node, ast.While):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from own_loops(list(ast.iter_child_nodes(node)))


def spins(loop: ast.While) -> bool:
    """Return whether a loop that waits for others can turn without waiting."""
    if waits(loop.test) or not (endless(loop) or any(isinstance(node, ast.Await) for node in ast.walk(loop))):
        return False
    return any(not waited for how, waited in ends(loop.body, waited=False) if how in {"falls", "turns"})


def spinning(path: str, tree: ast.AST) -> list[str]:
    return [
        f"{path}:{loop.lineno} {function.name}"
        for function in functions(tree)
        for loop in own_loops(function.body)
        if spins(loop)
    ]


def test_no_loop_of_the_runtime_can_turn_without_waiting() -> None:
    files = [file.relative_to(SOURCE.parent).as_posix() for file in SOURCE.rglob("*.py")]
    found = [wrong for file in files for wrong in spinning(file, ast.parse((SOURCE.parent / file).read_text("utf-8")))]
    assert found == []


WAITS_NOW_AND_THEN = """
async def run(self):
    while True:
        room = self.most - len(self.calls)
        taken = await self.take(room) if self.free else []
        if len(taken) < room or not room:
            await self.wake.wait()
"""
WAITS_IF_IT_WORKS = """
async def run(self):
    while True:
        try:
            self.look()
            await self.take()
        except LookupError:
            continue
"""
WAITS_ALWAYS = """
async def run(self):
    while True:
        try:
            if self.free and await self.take():
                continue
            if self.ended:
                break
            while self.found:
                self.found.pop()
        finally:
            await self.wake.wait()
"""


@pytest.mark.parametrize(
    ("loop", "wrong"),
    [(WAITS_NOW_AND_THEN, ["a:3 run"]), (WAITS_IF_IT_WORKS, ["a:3 run"]), (WAITS_ALWAYS, [])],
    ids=["now and then", "if it works", "always"],
)
def test_a_loop_is_judged_by_all_of_its_paths(loop: str, wrong: list[str]) -> None:
    assert spinning("a", ast.parse(loop)) == wrong


async def test_a_pause_lets_others_go_on_though_there_is_work_already() -> None:
    went_on, pause = asyncio.Event(), Pause(60.0)
    asyncio.get_running_loop().call_soon(went_on.set)
    pause.set()
    await pause.wait()
    assert went_on.is_set()
