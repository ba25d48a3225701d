"""The base of Segue's values and the ids that name them.

Values are frozen and compare by content. Time, ids and randomness come in as arguments, so the core is a function of
them.
"""

from collections.abc import Callable
from typing import Annotated, Any, NewType, TypeVar

import msgspec
from msgspec import Meta

T = TypeVar("T")
SessionId = NewType("SessionId", str)
PersonId = NewType("PersonId", str)
Moment = Annotated[float, "moment"]
"""Seconds since 1970, UTC; the command line finds times by this type and writes them as ISO 8601."""
Plain = Annotated[Any, "what JSON or a database can hold"]
"""Anything without life of its own: never a callable or an object that does something."""
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
"""Numbers that a host may set, with the limits that hold in segue.toml."""
LAST_MOMENT: Moment = 253_370_764_800
"""The beginning of the year 9999, after which the calendars of some zones end."""
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = tuple(high + low for high in _DIGITS for low in _DIGITS)
_SHIFTS = tuple(range(120, -1, -10))


class Value(msgspec.Struct, frozen=True, gc=False):
    """A frozen value that compares by content.

    It holds data that was there before it, never itself or anything live, so that the collector of cycles need not look
    at it.
    """


class Live(Value, frozen=True, gc=True):
    """A frozen value that holds something live, such as a callable, through which it may be reached again.

    The collector of cycles looks at it: through one that it doesn't see, a cycle is kept for ever.
    """


def converted(raw: object, kind: type[T]) -> T:
    """A value of a type from what JSON held; raises `msgspec.ValidationError`, whatever is wrong with it."""
    try:
        return msgspec.convert(raw, kind)
    except UnicodeEncodeError as error:
        raise msgspec.ValidationError("Half of a UTF-16 pair is no character") from error
    except RecursionError as error:
        raise msgspec.ValidationError("It is nested too deep") from error


def make_id(at: Moment, randomness: bytes) -> str:
    """A 26-character id that sorts by time: 48 bits of milliseconds, then ten random bytes."""
    if len(randomness) != 10:
        raise ValueError("an id needs ten random bytes")
    number = (int(at * 1000) & ((1 << 48) - 1)) << 80 | int.from_bytes(randomness)
    return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])


def is_id(text: str) -> bool:
    """Whether a text looks like an id."""
    return len(text) == 26 and set(text) <= set(_DIGITS)


def make_ids(clock: Callable[[], Moment], randomness: Callable[[int], bytes]) -> Callable[[], str]:
    """A source of ids that sort by the clock and can't be guessed."""
    pool: list[bytes] = []

    def fresh() -> str:
        if not pool:
            # Asking the system for randomness costs more than an id: take some at once.
            many = randomness(10 * 256)
            pool.extend(many[i : i + 10] for i in range(0, len(many), 10))
        return make_id(clock(), pool.pop())

    return fresh


class Secret:
    """A password, token or key; whoever prints it sees dots."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself, for the one place that needs it."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(...)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


LEFT = Secret("left where it is")
"""The place of a secret that nobody needs now: a command that only looks fetches none."""

INHERITED = (
    "HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
)  # fmt: skip
"""Variables of the gateway's own environment that a program which it starts needs and that hold no secret."""
