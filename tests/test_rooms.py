"""The rule of the rooms: core computes, changes yield, runtime awaits, the database runs the changes."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import segue

SOURCE = Path(segue.__file__).parent
MOST_FILES = 18
LONGEST_FUNCTION = 60
MOST_PARAMETERS = 8
Function = ast.FunctionDef | ast.AsyncFunctionDef
AWAITS = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)


def modules() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(SOURCE.rglob("*.py")):
        yield file.relative_to(SOURCE).as_posix(), ast.parse(file.read_text("utf-8"))


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def makes_transaction(function: Function) -> bool:
    return function.returns is not None and ast.unparse(function.returns).startswith("Transaction[")


def misplaced(path: str, tree: ast.Module) -> list[str]:
    """What stands in a room where it doesn't belong."""
    room = path.split("/", maxsplit=1)[0]
    found = []
    if room not in {"changes", "database"}:
        found += [f"{path}: {f.name} yields" for f in functions(tree) if makes_transaction(f)]
    if room == "changes" or (room == "core" and not path.startswith("core/contracts/")):
        found += [f"{path}:{node.lineno} awaits" for node in ast.walk(tree) if isinstance(node, AWAITS)]
    return found


def test_what_yields_is_in_changes_and_what_awaits_is_not() -> None:
    assert [wrong for path, tree in modules() for wrong in misplaced(path, tree)] == []


def test_what_is_misplaced_is_found() -> None:
    yields = ast.parse("def move(lane: Lane) -> Transaction[None]:\n    yield q.bind(lane=lane)\n")
    awaits = ast.parse("async def move(lane: Lane) -> None:\n    await lane\n")
    assert misplaced("runtime/inbox.py", yields) == ["runtime/inbox.py: move yields"]
    assert misplaced("changes/accept.py", yields) == []
    assert misplaced("changes/accept.py", awaits)
    assert misplaced("core/lanes.py", awaits)
    assert misplaced("runtime/inbox.py", awaits) == []


def test_no_room_is_crowded() -> None:
    files = [path for path in SOURCE.rglob("*") if path.is_file() and path.suffix != ".pyc" and path.stem != "__init__"]
    # Migrations are numbered and only ever added.
    files = [path for path in files if path.parent.name != "migrations"]
    crowded = {str(room): count for room, count in Counter(file.parent for file in files).items() if count > MOST_FILES}
    assert crowded == {}


def parameters(function: Function) -> int:
    given = function.args
    names = [arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in {"self", "cls"}])


def test_functions_are_short_and_take_few_arguments() -> None:
    found = [(path, function) for path, tree in modules() for function in functions(tree)]
    long = [f"{p}:{f.name}" for p, f in found if (f.end_lineno or 0) - f.lineno + 1 > LONGEST_FUNCTION]
    wide = [f"{p}:{f.name}" for p, f in found if parameters(f) > MOST_PARAMETERS]
    assert (long, wide) == ([], [])


def test_nothing_is_left_that_nobody_names() -> None:
    """Functions and values of a file, and private methods; a decorator or a library may call others."""
    made, named = dict[str, str](), Counter[str]()
    for path, tree in modules():
        if not path.startswith("testing/"):
            made |= {f.name: path for f in tree.body if isinstance(f, Function) and not f.decorator_list}
            made |= {f.name: path for f in functions(tree) if f.name.startswith("_") and not f.name.endswith("__")}
            values = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
            made |= {value.id: path for value in values if isinstance(value, ast.Name) and value.id != "__all__"}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute | ast.alias):
                named[node.attr if isinstance(node, ast.Attribute) else node.name] += 1
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                named[node.id] += 1
    assert {name: path for name, path in made.items() if not named[name]} == {}


def test_no_two_things_share_a_name() -> None:
    """Parallel files of platforms may say the same; nothing else does."""
    names: dict[str, list[str]] = {}
    for path, tree in modules():
        if path.split("/")[0] in {"adapters", "testing"}:
            continue
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                names.setdefault(node.name, []).append(path)
    assert {name: paths for name, paths in names.items() if len(paths) > 1} == {}
