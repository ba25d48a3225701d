"""Payloads that mean ill: values of every kind, and whole bodies after the type that reads them, with wrong parts."""

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

from msgspec import inspect

from tests.drills.hostile_names import hostile

_DEEP = 3_000
Named = dict[str, Callable[[random.Random], Any]]
"""Values that a field's name asks for."""
_SMALL: tuple[Callable[[random.Random], Any], ...] = (
    lambda dice: hostile(dice, 40),
    lambda dice: f"every {dice.choice(('day', 'monday', '9 hours'))} at {dice.randrange(99)}:{dice.randrange(99)} x",
    lambda dice: f"9999-12-31 23:59 {dice.choice(('America/New_York', 'Asia/Kathmandu', 'UTC', '../x'))} x",
    lambda dice: f"in {dice.randrange(10**9)} {dice.choice(('m', 'years', 'w', ''))} x",
    lambda dice: " ".join(dice.choice("*/0123456789,-#L?") * dice.randrange(1, 9) for _ in range(5)) + " x",
    lambda dice: "every " + "a and " * dice.randrange(60) + "!",
    lambda dice: "%s{0}{}{x.__class__}$(id)';drop table persons;--" * dice.randrange(5),
    lambda dice: "\ud800" * dice.randrange(3) + "\0" * dice.randrange(3) + "\udfff",
    lambda dice: dice.choice((None, True, False, -1, 0, 2**31, 2**63, -(2**63), 10**30, 1e308, -0.0)),
    lambda dice: dice.choice(([], {}, [[[[1]]]], {"id": {"id": []}}, [None], {"": ""}, ["a"] * 50)),
    lambda dice: dice.choice(("mxc://../x", "file:///etc/passwd", "http://[::1", "//", "..", "/../..", "\\\\x")),
    lambda dice: dice.choice("0123456789-+.#@/:!$") * dice.randrange(1, 30),
)
_LARGE: tuple[Callable[[random.Random], Any], ...] = (
    lambda dice: "a\u0301" * dice.randrange(20_000),
    lambda dice: "9" * dice.randrange(6_000),
    lambda dice: "`" * dice.randrange(11_000),
    lambda dice: dice.choice(("--to ", "— to ", "#", "/", "> ", "*_", "[](", "<b>", "&")) * dice.randrange(2_000),
    lambda dice: ("x" * dice.randrange(300) + "\n") * dice.randrange(60),
    lambda dice: {str(n): n for n in range(dice.randrange(2_000))},
    lambda dice: [hostile(dice, 4)] * dice.randrange(3_000),
)
_PLAIN: dict[type, Callable[[random.Random, Any], Any]] = {
    inspect.EnumType: lambda dice, info: dice.choice([member.value for member in info.cls]),
    inspect.LiteralType: lambda dice, info: dice.choice(info.values),
    inspect.BoolType: lambda dice, _: dice.random() < 0.5,
    inspect.IntType: lambda dice, _: dice.choice((0, 1, 7, -1, 2**31, 2**53, -(10**12), dice.randrange(10**6))),
    inspect.FloatType: lambda dice, _: dice.choice((0.0, 1.5, -1e300, float(dice.randrange(10**6)))),
    inspect.NoneType: lambda _dice, _: None,
    inspect.StrType: lambda dice, info: _text(dice, numbers=bool(info.pattern)),
}
"""A value of each type that has no parts."""


def _text(dice: random.Random, *, numbers: bool) -> str:
    """A text; where it has to look like something, that is a number."""
    if numbers:
        return str(dice.randrange(100))
    return hostile(dice, 6) if dice.random() < 0.5 else f"a{dice.randrange(100)}"


def mean(dice: random.Random) -> Any:
    """Something that nobody should send; one in twelve is large."""
    return dice.choice(_LARGE if dice.random() < 0.08 else _SMALL)(dice)


class Payloads:
    """Makes bodies after a type: most of each is as it should be, a few parts are not."""

    def __init__(self, dice: random.Random, known: Named) -> None:
        self._dice = dice
        self._known = known
        """Values that a field's name asks for, so that a body gets past the first look."""
        self.made: set[str] = set()
        """The structs that were made, and their fields."""

    def of(self, kind: Any) -> Any:
        """A body with up to three parts that are wrong; one in four is whole, and only its words mean ill."""
        made = self.whole(kind)
        for _ in range(self._dice.choice((0, 1, 1, 1, 1, 2, 2, 3))):
            made = self.spoiled(made)
        return made

    def whole(self, kind: Any) -> Any:
        """A body of which only the words mean ill."""
        return self._fit(_info(kind), 0)

    def encoded(self, kind: Any) -> bytes:
        """A body as bytes, some of which are no JSON at all."""
        chance = self._dice.random()
        if chance < 0.01:
            return self._dice.randbytes(self._dice.randrange(200))
        if chance < 0.02:
            return b'{"text":' * _DEEP + b"1" + b"}" * self._dice.choice((0, _DEEP))
        if chance < 0.03:
            return b"[" * self._dice.randrange(200_000)
        body = json.dumps(self.of(kind)).encode()
        return body if chance > 0.04 else body[: self._dice.randrange(len(body) + 1)]

    def _fit(self, info: Any, depth: int, name: str = "") -> Any:
        """A value that a type takes."""
        dice = self._dice
        if name in self._known and dice.random() < 0.8:
            return self._known[name](dice)
        if (plain := _PLAIN.get(type(info))) is not None:
            return plain(dice, info)
        match info:
            case inspect.StructType():
                given = {info.tag_field: info.tag} if info.tag_field else {}
                chance = 0.5 / (1 + depth)
                wanted = {one.encode_name: 0.6 if one.encode_name in self._known else chance for one in info.fields}
                fields = [one for one in info.fields if one.required or dice.random() < wanted[one.encode_name]]
                kind = info.cls.__name__
                self.made |= {kind, *(f"{kind}.{one.encode_name}" for one in fields)}
                return given | {one.encode_name: self._fit(one.type, depth + 1, one.encode_name) for one in fields}
            case inspect.UnionType():
                some = [one for one in info.types if not isinstance(one, inspect.NoneType)]
                none = len(some) < len(info.types) and dice.random() < 0.1
                return None if none else self._fit(dice.choice(some), depth, name)
            case inspect.VarTupleType() | inspect.ListType():
                return [self._fit(info.item_type, depth + 1, name) for _ in range(dice.randrange(3))]
            case _:
                return {key: mean(dice) for key in dice.sample([*self._known, "x"], min(3, len(self._known)))}

    def spoiled(self, made: Any) -> Any:
        """The same with one part, however deep, that is wrong or missing."""
        dice = self._dice
        if isinstance(made, dict) and made and dice.random() < 0.96:
            within = [key for key, value in made.items() if value and isinstance(value, dict | list)]
            key = dice.choice(within if within and dice.random() < 0.8 else list(made))
            if dice.random() < 0.15:
                return {name: value for name, value in made.items() if name != key}
            if dice.random() < 0.05:
                return made | {str(mean(dice))[:40]: mean(dice)}
            return made | {key: self.spoiled(made[key])}
        if isinstance(made, list) and made and dice.random() < 0.7:
            spot = dice.randrange(len(made))
            return [*made[:spot], self.spoiled(made[spot]), *made[spot + 1 :]]
        if dice.random() < 0.02:
            return _nested(dice.randrange(300))
        return mean(dice)


def fields_of(kind: Any) -> set[str]:
    """All structs that a type leads to, and their fields."""
    found: set[str] = set()
    ahead = [_info(kind)]
    while ahead:
        info = ahead.pop()
        if isinstance(info, inspect.StructType) and info.cls.__name__ not in found:
            found |= {info.cls.__name__, *(f"{info.cls.__name__}.{one.encode_name}" for one in info.fields)}
            ahead += [one.type for one in info.fields]
        ahead += getattr(info, "types", ())
        ahead += [info.item_type] if hasattr(info, "item_type") else []
    return found


@cache
def _info(kind: Any) -> Any:
    return inspect.type_info(kind)


def _nested(depth: int) -> Any:
    made: Any = "x"
    for _ in range(depth):
        made = {"a": made} if depth % 2 else [made]
    return made
