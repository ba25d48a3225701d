"""Asks people about deferred tool calls: for approval, or for the result."""

from collections import Counter
from hashlib import sha256

from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied

from segue.core.contracts.agents import Work
from segue.core.questions import LONGEST, YES
from segue.errors import Invalid, Unanswered

_SHOWN = LONGEST - 500
"""The longest part of a call's arguments that people see, in characters."""
DENIED = "The person said no."


class Deferred:
    """Asks about the tool calls in one attempt at a turn."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._asked: Counter[str] = Counter()

    async def results(self, requests: DeferredToolRequests) -> DeferredToolResults:
        """Ask about all calls, one after the other."""
        results = DeferredToolResults()
        for call in requests.approvals:
            results.approvals[call.tool_call_id] = await self._approval(call)
        for call in requests.calls:
            results.calls[call.tool_call_id] = await self._outcome(call)
        return results

    async def _approval(self, call: ToolCallPart) -> ToolApproved | ToolDenied:
        """Ask whether a call is allowed. Only a yes allows it."""
        try:
            said = await self._work.ask(f"May I use {_shown(call)}?", key=self._key(call), allows=call.tool_name)
        except Invalid as error:
            return ToolDenied(str(error))
        return ToolApproved() if said == YES else ToolDenied(DENIED)

    async def _outcome(self, call: ToolCallPart) -> str:
        """Ask for the result of a call that somebody else carries out."""
        try:
            return await self._work.ask(f"What does {_shown(call)} come to?", key=self._key(call))
        except (Invalid, Unanswered) as error:
            return str(error)

    def _key(self, call: ToolCallPart) -> str:
        """Return a key that is the same in every attempt.

        Call ids don't serve: the model makes new ones in each attempt.
        """
        written = f"{call.tool_name} {call.args_as_json_str()}"
        self._asked[written] += 1
        return f"{call.tool_name}/{sha256(written.encode()).hexdigest()[:32]}/{self._asked[written]}"


def _shown(call: ToolCallPart) -> str:
    arguments = call.args_as_dict()
    shown = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return f"{call.tool_name}({shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'})"
