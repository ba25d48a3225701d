"""Failures of agents: what is told of them, to whom, and whether another try may help."""

import traceback

from segue.core.values import Value
from segue.errors import AgentFailed, ModelRefused, OverBudget

_BUGS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    NotImplementedError,
    RecursionError,
    TypeError,
)
"""Errors of a program that fails the same way each time."""
FAILED = (
    "Something went wrong with that, {times} times over, and I stopped trying. Your message is kept; /retry asks again."
)
BROKEN = "Something is wrong that only my host can mend. Your message is kept; /retry asks again."
REFUSED = (
    "The model's provider refuses that message. It is set aside: what you say next is asked without it. "
    "/retry asks it again, /undo takes it back."
)
_KEPT = "Your message is kept; /retry asks again."
_LONGEST = 300


class AgentFailure(Value, frozen=True):
    """A failed try of a turn."""

    problem: str
    """The problem and what to do, for the host alone: it may quote what somebody said."""
    passes: bool
    where: str
    """The last line of code that it came from."""
    refused: bool = False
    """Whether a provider refuses what was said."""
    open: str = ""
    """The problem in words for anybody, if there are any."""

    def told(self, times: int) -> str:
        """The words for anybody."""
        if self.refused:
            return REFUSED
        if self.open:
            return f"{self.open} {_KEPT}"
        return FAILED.format(times=times) if self.passes else BROKEN

    @property
    def told_host(self) -> str:
        """The words for the host."""
        return f"{self.problem} {REFUSED if self.refused else _KEPT}"


def failure(error: BaseException) -> AgentFailure:
    """The failure that an error tells of."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    if isinstance(error, AgentFailed):
        words = error.problem if isinstance(error, OverBudget) else ""
        return AgentFailure(str(error), error.passes, where, isinstance(error, ModelRefused), words)
    words = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST]
    problem = f"The agent failed: {words}" + (f" ({where})." if where else ".")
    bug = isinstance(error, _BUGS)
    return AgentFailure(f"{problem} The log has the traceback." if bug else problem, not bug, where)
