"""The arguments of a tool: a struct gives the schema that a model reads, and the words for what it got wrong."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

from segue.core.values import Value, converted
from segue.errors import Invalid

A = TypeVar("A", bound=Value)
_MISSING = re.compile(r"missing required field `(?P<name>[^`]*)`")
_AT = re.compile(r"^(?P<problem>.*?)(?: - at `\$\.?(?P<name>[^`.\[]*+)[^`]*+`)?$", re.DOTALL)


@cache
def schema_of(arguments: type[Value]) -> Mapping[str, Any]:
    """The arguments as one JSON schema of an object, without references: not every model follows those."""
    schema = msgspec.json.schema(arguments)
    inside = schema.pop("$defs", {})
    whole = _inlined(schema, inside)
    return {key: whole[key] for key in ("type", "properties", "required") if key in whole} | {
        "additionalProperties": False
    }


def take(given: Any, arguments: type[A]) -> A:
    """A model's arguments, checked; raises `Invalid` with the argument's name and what to do."""
    if isinstance(given, str | bytes):
        try:
            given = msgspec.json.decode(given)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise Invalid("arguments", f"they aren't JSON ({error})", "Give one JSON object.") from error
    known = schema_of(arguments)["properties"]
    given = {} if given is None else given
    if isinstance(given, Mapping):
        for name in given:
            if name not in known:
                raise Invalid(str(name), "there is no such argument", f"The arguments are {', '.join(known)}.")
    try:
        taken = converted(given, arguments)
        msgspec.json.encode(taken)
    except msgspec.ValidationError as error:
        raise _mistake(str(error), known) from error
    except UnicodeEncodeError as error:
        raise Invalid("arguments", "one of them has half of a UTF-16 pair", "Write whole characters.") from error
    return taken


def _inlined(schema: Any, inside: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(item, inside) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        named = inside[schema["$ref"].rpartition("/")[2]]
        return _inlined(named, inside) | {key: value for key, value in schema.items() if key != "$ref"}
    plain = {key: value for key, value in schema.items() if key != "title"}
    if all(isinstance(word, str) for word in plain.get("enum", [None])):
        plain["type"] = "string"
    return {key: _inlined(value, inside) for key, value in plain.items()}


def _mistake(said: str, known: Mapping[str, Any]) -> Invalid:
    """The mistake, by the argument's name."""
    missing = _MISSING.search(said)
    if missing:
        return Invalid(missing["name"], "it is missing", _fix(known, missing["name"]))
    found = _AT.match(said)
    name = (found["name"] if found else "") or "arguments"
    problem = (found["problem"] if found else said).replace("`", "")
    return Invalid(name, problem[:1].lower() + problem[1:], _fix(known, name))


def _fix(known: Mapping[str, Any], name: str) -> str:
    described = known.get(name, {}).get("description", "")
    return f"Give {described}" if described else f"The arguments are {', '.join(known)}."


SESSION = "the id of a session, as sessions_list shows it, instead of a label."


def named(label: str, session: str) -> None:
    """Raise `Invalid` unless exactly one of the two is there."""
    if not label and not session:
        raise Invalid("label", "it is missing, and so is session", "Give the label of a child, or a session's id.")
    if label and session:
        raise Invalid("session", "there is a label too", "Give one of the two.")
