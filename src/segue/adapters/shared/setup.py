"""An account that is being added: its keys, from answers and as they are written down, and its first message."""

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import NODEFAULT
from msgspec.structs import fields

from segue.adapters.shared.outcomes import calling
from segue.core.contracts.adapters import Closes
from segue.core.values import Secret, Value
from segue.errors import Invalid, SendNever

C = TypeVar("C", bound=Closes)
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


async def greeted(who: str, api: C, hello: Callable[[C], Awaitable[object]]) -> str:
    """Say hello by a call of an API, which is then closed; returns what to tell whoever is adding the account."""
    async with calling(api):
        try:
            await hello(api)
        except SendNever as error:
            return f"{who} didn't let me say hello: {error}"
    return f"Said hello to you on {who}."


def _read(key: str, kind: Any, said: str) -> Any:
    if not issubclass(kind, StrEnum):
        return kind(said)
    if said not in tuple(kind):
        choices = " or ".join(f'"{one}"' for one in kind)
        raise Invalid(key, f"{said!r} is none", f"Write {choices}.")
    return kind(said)
