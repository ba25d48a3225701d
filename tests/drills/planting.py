"""Mistakes that are planted on purpose, for as long as a block lasts: a drill that doesn't find one is no drill."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from segue.store import file


class Patch(NamedTuple):
    """What is put in the place of something, for a while."""

    owner: Any
    name: str
    made_of: Callable[[Any], Any]
    """Given what is there, what is there instead."""


@contextmanager
def planted(*patches: Patch) -> Iterator[None]:
    """Plant them, and take them back in the end."""
    before: list[tuple[Patch, Any]] = []
    try:
        for patch in patches:
            found = vars(patch.owner)[patch.name]
            before.append((patch, found))
            setattr(patch.owner, patch.name, patch.made_of(found))
        yield
    finally:
        for patch, found in reversed(before):
            setattr(patch.owner, patch.name, found)


def pragma(name: str, value: object) -> Patch:
    """Another setting of the SQLite file."""

    def made_of(settings: str) -> str:
        lines = [line for line in settings.splitlines() if not line.strip().startswith(f"pragma {name} ")]
        assert len(lines) < len(settings.splitlines())
        return "\n".join([*lines, f"pragma {name} = {value};"])

    return Patch(file, "_SETTINGS", made_of)
