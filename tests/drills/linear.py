"""Whether what several processes saw could have happened one after the other: the search of Wing and Gong, with Lowe's
memory of where it has been.

Each operation took effect at one moment between its call and its return, or, if it never returned, at any moment after
its call or at none. The search looks for an order in which each would have got what it got.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeVar

S = TypeVar("S", bound=Hashable)


class Operation(NamedTuple):
    """What somebody did, when, and what they got."""

    do: str
    of: tuple[str, ...]
    called: float
    returned: float = math.inf
    got: Any = None
    """What it returned; nothing is known of one that never did."""


Step = Callable[[S, Operation], tuple[Any, S]]
"""Given a state and an operation, what it returns there, and the state after it."""


def unordered(history: Sequence[Operation], start: S, step: Step[S]) -> list[Operation]:
    """The operations that stand in the way of every order; none, if there is an order."""
    ops = sorted(history, key=lambda op: op.called)
    wanted = sum(1 << i for i, op in enumerate(ops) if op.returned < math.inf)
    seen: set[tuple[int, S]] = {(0, start)}
    ahead: list[tuple[int, S]] = [(0, start)]
    furthest, stuck = -1, list[int]()
    while ahead:
        done, state = ahead.pop()
        if done & wanted == wanted:
            return []
        open_ = _next(ops, done)
        if (progress := (done & wanted).bit_count()) > furthest:
            furthest, stuck = progress, open_
        for i in open_:
            got, after = step(state, ops[i])
            if ops[i].returned < math.inf and got != ops[i].got:
                continue
            there = done | 1 << i, after
            if there not in seen:
                seen.add(there)
                ahead.append(there)
    return [ops[i] for i in stuck]


def _next(ops: Sequence[Operation], done: int) -> list[int]:
    """Which may come next: those that nothing that is still to come had returned before."""
    found = []
    limit = math.inf
    first = (~done & (done + 1)).bit_length() - 1
    for i in range(first, len(ops)):
        if ops[i].called > limit:
            break
        if not done >> i & 1:
            found.append(i)
            limit = min(limit, ops[i].returned)
    return found
