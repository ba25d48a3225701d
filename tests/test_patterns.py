"""Patterns: none can take longer than its text is long, however the text is made."""

import ast
from collections.abc import Iterator
from pathlib import Path

# No public part of `re` shows how a pattern was understood.
from re import _parser  # type: ignore[attr-defined]

import pytest

import segue

SOURCES = Path(segue.__file__).parent
REPEATS = {"MAX_REPEAT", "MIN_REPEAT"}
KEPT = {"POSSESSIVE_REPEAT", "ATOMIC_GROUP"}
"""What is matched once and never again in another way."""


def patterns(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Each pattern that a module hands to `re`, by its line; what is put into one stands for a letter."""
    texts = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and _name(node.func) in {"re", "_request"}:
            yield node.lineno, _text(node.args[0], texts)


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute) and function.attr != "escape" and isinstance(function.value, ast.Name):
        return function.value.id
    return function.id if isinstance(function, ast.Name) else ""


def _text(value: ast.expr, texts: dict[str, ast.expr]) -> str:
    match value:
        case ast.Constant(str(text)):
            return text
        case ast.JoinedStr(parts):
            return "".join(_text(part, texts) for part in parts)
        case ast.FormattedValue(inside):
            return _text(inside, texts)
        case ast.BinOp(left, ast.Add(), right):
            return _text(left, texts) + _text(right, texts)
        case ast.Name(name) if name in texts:
            return _text(texts[name], texts)
    return "x"


def explodes(pattern: str) -> bool:
    """Whether something without end is repeated without end, so that a text can be cut up in ever more ways."""
    return _nested(_parser.parse(pattern), repeated=False)


def _nested(node: object, *, repeated: bool) -> bool:
    match node:
        case (code, (_, most, inside)) if str(code) in REPEATS:
            endless = most is _parser.MAXREPEAT
            return (endless and repeated) or _nested(inside, repeated=repeated or endless)
        case (code, (_, _, inside)) if str(code) in KEPT:
            return _nested(inside, repeated=False)
        case tuple() | list() | _parser.SubPattern():
            return any(_nested(part, repeated=repeated) for part in node)
        case _:
            return False


@pytest.mark.parametrize("pattern", [r"(a+)+b", r"(?:a*,?)*", r"x(?:(?:a+?b?){0,3})*", r"(?:a|b\s*)+", r"(?=(?:a+)*)"])
def test_a_pattern_that_explodes_is_seen(pattern: str) -> None:
    assert explodes(pattern)
    assert [found for _, found in patterns(ast.parse(f"import re\nx = re.compile(r'{pattern}')"))] == [pattern]


@pytest.mark.parametrize("pattern", [r"a+b+", r"(?:a{1,3},)*", r"(?:a++b)*", r"(?:ab*c)*+", r"(?:a+ ){4}"])
def test_one_that_cannot_is_not(pattern: str) -> None:
    assert not explodes(pattern)


def test_no_pattern_explodes() -> None:
    found = [
        (f"{path}:{n}", text) for path in SOURCES.rglob("*.py") for n, text in patterns(ast.parse(path.read_bytes()))
    ]
    assert [f"{where}: {pattern}" for where, pattern in found if explodes(pattern)] == []
    assert sum(pattern != "x" for _, pattern in found) > 60, "all patterns are looked at"
