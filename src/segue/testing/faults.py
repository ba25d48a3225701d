"""Faults of a platform: their kind, the calls that they affect, and their number."""

import asyncio
from collections import Counter
from collections.abc import Callable
from enum import Enum, StrEnum
from typing import TypeVar, assert_never

from segue.core.values import Value
from segue.testing.waits import Changes

T = TypeVar("T")


class Call(StrEnum):
    """A call that an adapter may make to a platform."""

    SEND = "send"
    EDIT = "edit"
    OPEN_THREAD = "open_thread"
    TYPING = "typing"
    FIND = "find"
    LOOK = "look"
    FETCH = "fetch"


class Fault(Enum):
    """A fault in a call; the value describes the platform's behaviour."""

    SERVER_ERROR = "answered 500 and did nothing"
    REFUSES = "answered 400 and will never do it"
    UNREACHABLE = "couldn't be reached"
    TAKES_AND_BREAKS = "did it, and then the line broke before the answer"
    HANGS = "did nothing and never answered"
    TAKES_AND_HANGS = "did it and never answered"


class RateLimit(Value, frozen=True):
    """The platform answers 429 and says when to retry."""

    seconds: float | None = None


class Slow(Value, frozen=True):
    """The platform carries out the call and answers late."""

    seconds: float


class ApiError(Exception):
    """The error of a platform's own client library for a response other than 2xx."""

    def __init__(self, status: int, why: str, retry_after: float | None = None) -> None:
        super().__init__(f"{status}: {why}")
        self.status = status
        self.retry_after = retry_after


class _Plan:
    """A fault that waits for its calls."""

    def __init__(self, fault: Fault | RateLimit | Slow, on: Call | None, times: int | None) -> None:
        self.fault = fault
        self.on = on
        self.times = times


class Faults:
    """Counts every call and makes some of them fail."""

    def __init__(self, changes: Changes) -> None:
        self.calls: Counter[Call] = Counter()
        self._plans: list[_Plan] = []
        self._changes = changes

    def plan(self, fault: Fault | RateLimit | Slow, on: Call | None, times: int | None) -> None:
        """Make the next calls fail.

        Without a call it affects every kind of call, and without a number it lasts until `clear`.
        """
        self._plans.append(_Plan(fault, on, times))

    def clear(self) -> None:
        """Remove all faults and break off hanging calls."""
        self._plans.clear()
        self._changes.tell()

    async def call(self, call: Call, do: Callable[[], T]) -> T:
        """Carry out a call, or fail as planned."""
        await asyncio.sleep(0)  # a real call also yields to other tasks
        self.calls[call] += 1
        plan = self._take(call)
        self._changes.tell()
        if plan is None:
            return do()
        match plan.fault:
            case RateLimit(seconds=seconds):
                raise ApiError(429, "too many requests", seconds)
            case Slow(seconds=seconds):
                done = do()
                await asyncio.sleep(seconds)
                return done
            case Fault.SERVER_ERROR:
                raise ApiError(500, "internal server error")
            case Fault.REFUSES:
                raise ApiError(400, f"{call} isn't possible here")
            case Fault.UNREACHABLE:
                raise ConnectionRefusedError("nobody listens there")
            case Fault.TAKES_AND_BREAKS:
                do()
                raise ConnectionResetError("the connection broke")
            case Fault.TAKES_AND_HANGS:
                do()
                await self._hang(plan)
            case Fault.HANGS:
                await self._hang(plan)
            case _:
                assert_never(plan.fault)
        raise ConnectionResetError("the connection broke")

    def _take(self, call: Call) -> _Plan | None:
        plan = next((plan for plan in self._plans if plan.on in {None, call} and plan.times != 0), None)
        if plan is not None and plan.times is not None:
            plan.times -= 1
        return plan

    async def _hang(self, plan: _Plan) -> None:
        while plan in self._plans:
            await self._changes.next()
