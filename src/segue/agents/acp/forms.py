"""A form that an ACP agent wants filled in, asked a field after the other."""

from collections.abc import Awaitable, Callable
from typing import Any

from acp.schema import (
    ElicitationBooleanPropertySchema,
    ElicitationIntegerPropertySchema,
    ElicitationMultiSelectPropertySchema,
    ElicitationNumberPropertySchema,
    ElicitationSchema,
    ElicitationStringPropertySchema,
)

from segue.core.questions import NO, YES

Ask = Callable[[str, tuple[str, ...]], Awaitable[str | None]]
"""Asks a person words with choices; None if nobody answers."""
_TRIES = 3


async def fill(message: str, schema: ElicitationSchema, ask: Ask) -> dict[str, Any] | None:
    """The content of a form; None if it isn't filled in."""
    fields = schema.properties or {}
    if not fields:
        return {} if await ask(message, (YES, NO)) == YES else None
    content: dict[str, Any] = {}
    for n, (name, field) in enumerate(fields.items()):
        title = getattr(field, "title", None) or name
        about = getattr(field, "description", None)
        words = "\n".join(filter(None, [message if not n else "", f"{title}: {about}" if about else title]))
        for _ in range(_TRIES):
            answer = await ask(words, _choices(field))
            if answer is None:
                return None
            if (value := _value(field, answer)) is not None:
                content[name] = value
                break
        else:
            return None
    return content


def _choices(field: Any) -> tuple[str, ...]:
    match field:
        case ElicitationBooleanPropertySchema():
            return (YES, NO)
        case ElicitationStringPropertySchema(one_of=list(options)) if len(options) > 1:
            return tuple(option.title for option in options)
        case ElicitationStringPropertySchema(enum=list(options)) if len(options) > 1:
            return tuple(options)
        case _:
            return ()


def _value(field: Any, answer: str) -> Any:
    """An answer in the form of its field; None if it isn't one."""
    match field:
        case ElicitationBooleanPropertySchema():
            return answer == YES
        case ElicitationStringPropertySchema(one_of=list(options)):
            return next((option.const for option in options if option.title == answer), answer)
        case ElicitationIntegerPropertySchema() | ElicitationNumberPropertySchema():
            try:
                return int(answer) if isinstance(field, ElicitationIntegerPropertySchema) else float(answer)
            except ValueError:
                return None
        case ElicitationMultiSelectPropertySchema():
            return [piece.strip() for piece in answer.split(",") if piece.strip()]
        case _:
            return answer
