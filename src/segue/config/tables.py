"""Reads tables into values.

Every mistake names its key and says what to write instead.
"""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import Meta
from msgspec.structs import FieldInfo, fields

from segue.config.references import References
from segue.core.values import Secret
from segue.errors import Invalid

T = TypeVar("T")
_INDEX = re.compile(r" - at `\$(\[\d+\])`$")
_WANTED = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text in quotes",
    Secret: "a reference",
    Path: "a path in quotes",
}
_SHOWN = 40


class Incomplete(Invalid):
    """A table with mistakes, all of which are noted down."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "it has mistakes", "Mend them.")


class Tables:
    """Reads tables and fetches the references in them.

    With a list of mistakes, reading continues after each one, so that all are found.
    """

    def __init__(self, references: References, mistakes: list[Invalid] | None = None) -> None:
        self._references = references
        self._mistakes = mistakes

    def refuse(self, error: Invalid) -> None:
        """Raise a mistake, or note it down and continue without the wrong value."""
        if self._mistakes is None:
            raise error
        self._mistakes.append(error)

    def read(self, table: object, kind: type[T], path: str) -> T:
        """Read a table into a value of this type."""
        table = as_table(table, path)
        known = keys_of(kind)
        values = self.fields(table, known, path)
        for key, field in known.items():
            if field.required and key not in table:
                self.refuse(Invalid(joined(path, key), "it is missing", f"Add it: {key} = {_example(field.type)}"))
        if any(field.required and field.name not in values for field in known.values()):
            raise Incomplete(path)
        while True:
            try:
                return kind(**values)
            except Invalid as error:
                self.refuse(within(path, error))
                if error.field not in known or known[error.field].required:
                    raise Incomplete(path) from error
                del values[known[error.field].name]

    def fields(self, table: object, known: Mapping[str, FieldInfo], path: str) -> dict[str, Any]:
        """Read a table's keys into values, by field name."""
        table = as_table(table, path)
        self.refuse_unknown(table, known, path)
        values = {}
        for key, field in known.items():
            if key in table:
                try:
                    values[field.name] = self._field(field, table[key], joined(path, key))
                except Incomplete:
                    """Its mistakes are in the list already."""
                except Invalid as error:
                    self.refuse(error)
        return values

    def refuse_unknown(self, table: Iterable[str], known: Iterable[str], path: str) -> None:
        """Refuse unknown keys; suggest the known key that is most similar."""
        known = list(known)
        for key in table:
            if key not in known:
                self.refuse(Invalid(joined(path, key), "there is no such key", nearest(key, known)))

    def section(self, tables: Mapping[str, Any], name: str, kind: type[T]) -> T:
        """Read one of several tables. A missing table has the defaults."""
        return self.read(tables.get(name, {}), kind, name)

    def _field(self, field: FieldInfo, value: object, path: str) -> Any:
        kind = _given(field.type)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self.read(value, kind, path)
        try:
            return msgspec.convert(value, kind, dec_hook=self._fetch)
        except Invalid as error:
            raise within(path, error) from error
        except msgspec.ValidationError as error:
            index = found[1] if (found := _INDEX.search(str(error))) else ""
            raise _mistaken(field, kind, value, path, index) from error

    def _fetch(self, kind: type, value: object) -> Secret | Path:
        """Decode the types that msgspec can't.

        A secret is fetched by its reference; a path is relative to segue.toml's folder.
        """
        return self._references.path(value) if kind is Path else self._references.fetch(value)


def keys_of(kind: type) -> dict[str, FieldInfo]:
    """Return the keys of the table for a type."""
    return {field.encode_name: field for field in fields(cast("type[msgspec.Struct]", kind))}


def as_table(value: object, path: str) -> Mapping[str, Any]:
    """Return a value that is a table; refuse others."""
    if not isinstance(value, Mapping):
        raise Invalid(path, f"{_shown(value)} is not a table", f"Write its keys under [{path}].")
    return value


def nearest(word: str, known: Iterable[str]) -> str:
    """Suggest known words that are similar to a wrong one."""
    known = sorted(known)
    if close := get_close_matches(word, known, 1):
        return f"Did you mean {close[0]}?"
    return f"There are: {', '.join(known)}." if known else "Remove it."


def within(path: str, error: Invalid) -> Invalid:
    """Return the same mistake with the full name of its key."""
    return Invalid(joined(path, error.field), error.problem, error.fix)


def joined(path: str, key: str) -> str:
    """Join a table's path and a key."""
    return ".".join(part for part in (path, key) if part)


def _mistaken(field: FieldInfo, kind: Any, value: object, path: str, index: str) -> Invalid:
    base, limits = _parts(kind)
    if isinstance(base, type) and issubclass(base, Enum):
        choices = [str(member.value) for member in base]
        fix = nearest(value, choices) if isinstance(value, str) else f"Choose one of: {', '.join(choices)}."
        return Invalid(path, f"{_shown(value)} is not a choice", fix)
    if index:
        return Invalid(path + index, "it is not text in quotes", f"Write {field.encode_name} = {_example(kind)}")
    if limits and (type(value) is base or (base is float and type(value) is int)):
        return Invalid(path, f"{value} is out of range", f"Give {_wanted(base)} {limits}.")
    fix = f"Write {field.encode_name} = {_example(kind, field.default)}"
    return Invalid(path, f"{_shown(value)} is not {_wanted(base)}", fix)


def _given(kind: Any) -> Any:
    """Return a type without None, which TOML can't express."""
    if get_origin(kind) in (UnionType, Union):
        [kind] = [part for part in get_args(kind) if part is not NoneType]
    return kind


def _parts(kind: Any) -> tuple[Any, str]:
    """Return a type and its limits in words."""
    if get_origin(kind) is not Annotated:
        return kind, ""
    base, *notes = get_args(kind)
    words = [
        f"{word} {limit:.15g}"
        for note in notes
        if isinstance(note, Meta)
        for word, limit in (("of at least", note.ge), ("above", note.gt), ("of at most", note.le))
        if limit is not None
    ]
    return base, " and ".join(words)


def _wanted(base: Any) -> str:
    return _WANTED.get(base, "a list of texts in quotes")


def _example(kind: Any, default: object = msgspec.NODEFAULT) -> str:
    base, _ = _parts(_given(kind))
    if isinstance(default, int | float) and base is not bool:
        return f"{default:g}"
    examples = {bool: "true or false", int: "1", float: "1.5", str: '"..."', Secret: '"env:NAME"', Path: '"..."'}
    if isinstance(base, type) and issubclass(base, Enum):
        return " or ".join(f'"{member.value}"' for member in base)
    return examples.get(base, '["...", "..."]')


def _shown(value: object) -> str:
    """Return a wrong value as the host wrote it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= _SHOWN else f'"{value[:_SHOWN]}..."'
    if isinstance(value, Mapping):
        return "a table"
    return "a list" if isinstance(value, list) else str(value)
