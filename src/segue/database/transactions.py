"""Rules of a transaction that hold on both databases."""

from collections.abc import Generator, Mapping
from typing import Any, TypeVar

from segue.core.contracts.database import Row, Statement, Transaction
from segue.core.contracts.probes import Point
from segue.core.contracts.wakes import Wake
from segue.database.statements import q
from segue.errors import Invalid, Refused, StoreError, StoreLocked, StoreTooNew

ATTEMPTS = 100
"""Tries of a transaction before it counts as one that can't get through."""
_LARGEST = 2**63 - 1
Steps = list[tuple[int, str]]
T = TypeVar("T")


class Moved(Exception):
    """The facts changed between two statements of a transaction: roll back and run it again from its start."""


def one_by_one(steps: Transaction[T]) -> Generator[Statement | Wake, list[Row], T]:
    """The same transaction, one statement at a time: batches taken apart, what must find something looked at."""
    rows: Any = None
    while True:
        try:
            step = steps.send(rows)
        except StopIteration as done:
            result: T = done.value
            return result
        if isinstance(step, Wake):
            rows = yield step
        elif isinstance(step, Statement):
            rows = yield from _looked_at(step)
        else:
            rows = []
            for statement in step.statements:
                rows.append((yield from _looked_at(statement)))


def _looked_at(statement: Statement) -> Generator[Statement | Wake, list[Row], list[Row]]:
    """The rows of a statement, whether or not it must have some."""
    rows = yield Statement(statement.name, statement.arguments)
    refuse_moved(statement, rows)
    return rows


def refuse_moved(statement: Statement, rows: list[Row]) -> None:
    """Raise `Moved` if a statement that must find or change something didn't."""
    if statement.must and not rows:
        raise Moved


def went_on() -> RuntimeError:
    """The error for a transaction that says more after its last statements."""
    return RuntimeError("a transaction went on after the batch that it had called its last")


def unheeded(_: Point) -> None:
    """The probe of a process that no drill watches."""


def refuse_unsound(arguments: Mapping[str, Any]) -> None:
    """Refuse what one of the databases couldn't keep: both say no to the same."""
    # Almost every statement is sound, and all of its texts together are seen to be so as fast as one of them.
    text = "".join([argument for argument in arguments.values() if isinstance(argument, str)])
    if "\0" in text or not text.isascii():
        _refuse_text(arguments)
    for name, argument in arguments.items():
        if isinstance(argument, int) and not -_LARGEST <= argument <= _LARGEST:
            raise Invalid(name, "no number is that large here", f"Keep it within {_LARGEST:,}.")


def _refuse_text(arguments: Mapping[str, Any]) -> None:
    for name, argument in arguments.items():
        if not isinstance(argument, str):
            continue
        if "\0" in argument:
            raise Invalid(name, "text can't contain the character NUL", "Remove it.")
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise Invalid(name, "text can't contain half of a surrogate pair", "Decode it anew.") from None


def too_long() -> Invalid:
    """The error for a value that is longer than the database, or an index of it, can hold."""
    return Invalid("value", "one is longer than the database can keep", "Shorten it.")


def never_settled(place: str) -> StoreError:
    """The error for a transaction that was overtaken each time it ran."""
    return StoreLocked(f"{place}: others changed the same things {ATTEMPTS} times in a row. Try again.")


def pending(steps: Steps, version: int, place: str) -> Steps:
    """The migrations that a database at this version still needs."""
    newest = max((number for number, _ in steps), default=0)
    if version > newest:
        raise StoreTooNew(
            f"{place} is at version {version} and this Segue knows versions up to {newest}. Install a newer Segue."
        )
    return [step for step in sorted(steps) if step[0] > version]


def attempt(steps: Transaction[T]) -> Transaction[T]:
    """Run some steps; if they are refused, what they wrote until then is taken back before the refusal goes on."""
    yield q.mark()
    try:
        done = yield from steps
    except (Refused, Invalid):
        yield q.back_to_mark()
        yield q.forget_mark()
        raise
    yield q.forget_mark()
    return done
