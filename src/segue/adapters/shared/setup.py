"""Keys of an account that is being added: from the answers of whoever adds it, and as they are written down."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import NODEFAULT
from msgspec.structs import fields

from segue.core.values import Secret, Value
from segue.errors import Invalid

V = TypeVar("V", bound=Value)


def keys_of(kind: type[V], answers: Mapping[str, str]) -> V:
    """The keys that the answers to questions of their names make; an empty one leaves a default as it is."""
    given: dict[str, Any] = {}
    for field in fields(kind):
        said = answers.get(field.name, "").strip()
        if said or field.required:
            given[field.name] = _read(field.name, field.type, said)
    return kind(**given)


def written(keys: Value) -> tuple[dict[str, str], dict[str, Secret]]:
    """The keys that aren't as they are by default: those that anybody may read, and the secrets."""
    values = {field.name: (getattr(keys, field.name), field.default) for field in fields(keys)}
    changed = {name: value for name, (value, default) in values.items() if default is NODEFAULT or value != default}
    secrets = {name: value for name, value in changed.items() if isinstance(value, Secret)}
    return {name: str(value) for name, value in changed.items() if name not in secrets}, secrets


def _read(key: str, kind: Any, said: str) -> Any:
    if not issubclass(kind, StrEnum):
        return kind(said)
    if said not in tuple(kind):
        choices = " or ".join(f'"{one}"' for one in kind)
        raise Invalid(key, f"{said!r} is none", f"Write {choices}.")
    return kind(said)
