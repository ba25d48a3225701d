"""A form that an ACP agent wants filled in, asked a field after the other.

Law: what needn't be said can be skipped. A field for one's own words beside a choice is asked only of who wants it.
"""

from collections.abc import Awaitable, Callable, Mapping
from itertools import pairwise
from typing import Any

from acp.schema import (
    ElicitationBooleanPropertySchema,
    ElicitationIntegerPropertySchema,
    ElicitationMultiSelectPropertySchema,
    ElicitationNumberPropertySchema,
    ElicitationSchema,
    ElicitationStringPropertySchema,
)

from segue.core.questions import LONGEST_CHOICE, MOST_CHOICES, NO, YES

Ask = Callable[[str, tuple[str, ...]], Awaitable[str | None]]
"""Asks a person words with choices; None if nobody answers."""
SKIP, OTHER = "skip", "something else"
_TRIES = 3


class Unfilled(Exception):
    """Nobody answers, or not with what the form takes."""


async def fill(message: str, schema: ElicitationSchema, ask: Ask) -> dict[str, Any] | None:
    """The content of a form; None if it isn't filled in."""
    fields, required = schema.properties or {}, set(schema.required or ())
    if not fields:
        return {} if await ask(message, (YES, NO)) == YES else None
    content: dict[str, Any] = {}
    beside = _beside(fields, required)
    try:
        for name, field in fields.items():
            if name in beside.values():
                continue
            words = "\n".join(filter(None, [message, _about(name, field)]))
            message = ""
            answer = await _answer(field, words, (OTHER,) * (name in beside), (SKIP,) * (name not in required), ask)
            if answer == OTHER:
                content[beside[name]] = await _said(_about(beside[name], fields[beside[name]]), ask)
            elif answer is not None:
                content[name] = answer
    except Unfilled:
        return None
    return content


def _beside(fields: Mapping[str, Any], required: set[str]) -> dict[str, str]:
    """The choices that have a field for one's own words beside them, by its name the choice's."""
    return {
        choice: own
        for choice, own in pairwise(fields)
        if _options(fields[choice]) and own.startswith(choice) and own not in required and _plain(fields[own])
    }


def _plain(field: Any) -> bool:
    return isinstance(field, ElicitationStringPropertySchema) and not _options(field)


def _about(name: str, field: Any) -> str:
    """The words about a field."""
    title, about = getattr(field, "title", None) or name, getattr(field, "description", None)
    options = _described(field)
    return "\n".join([f"{title}: {about}" if about else title, *options])


async def _answer(field: Any, words: str, other: tuple[str, ...], skip: tuple[str, ...], ask: Ask) -> Any:
    """The value of a field; None if it is skipped."""
    options = _options(field)
    choices = (*options, *other, *skip) if options else ()
    if isinstance(field, ElicitationMultiSelectPropertySchema):
        words, choices = f"{words}\nName one or more, with commas: {', '.join((*options, *other))}.", ()
    elif len(choices) > MOST_CHOICES or any(len(choice) > LONGEST_CHOICE for choice in choices):
        words, choices = f"{words}\nOne of: {', '.join((*options, *other))}.", ()
    if skip and not choices:
        words = f"{words}\n(“{SKIP}” leaves it out.)"
    for _ in range(_TRIES):
        said = await _said(words, ask, choices)
        if said.casefold() in skip:
            return None
        if said in other:
            return OTHER
        if (value := _value(field, said, options)) is not None:
            return value
    raise Unfilled


async def _said(words: str, ask: Ask, choices: tuple[str, ...] = ()) -> str:
    answer = await ask(words, choices)
    if answer is None:
        raise Unfilled
    return answer


def _listed(field: Any) -> list[Any]:
    """The options of a field that have titles."""
    items = getattr(field, "items", None)
    return list(getattr(field, "one_of", None) or getattr(items, "any_of", None) or ())


def _options(field: Any) -> dict[str, Any]:
    """The values that a field may have, by the words that people read; none, if it may have any."""
    if isinstance(field, ElicitationBooleanPropertySchema):
        return {YES: True, NO: False}
    plain = getattr(field, "enum", None) or getattr(getattr(field, "items", None), "enum", None) or ()
    return {" ".join(one.title.split()): one.const for one in _listed(field)} or {one: one for one in plain}


def _described(field: Any) -> list[str]:
    """What is to be known about the options, a line each."""
    about = [(one.title, getattr(one, "description", None)) for one in _listed(field)]
    return [f"- {title}: {text}" for title, text in about if text]


def _value(field: Any, said: str, options: Mapping[str, Any]) -> Any:
    """An answer in the form of its field; None if it isn't one."""
    known = {word.casefold(): value for word, value in options.items()}
    match field:
        case ElicitationMultiSelectPropertySchema():
            picked = [piece.strip() for piece in said.split(",") if piece.strip()]
            found = [known.get(one.casefold()) for one in picked] if known else picked
            return None if None in found or not found else found
        case ElicitationIntegerPropertySchema() | ElicitationNumberPropertySchema():
            try:
                return int(said) if isinstance(field, ElicitationIntegerPropertySchema) else float(said)
            except ValueError:
                return None
        case _:
            return known.get(said.casefold()) if known else said
