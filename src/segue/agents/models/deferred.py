"""Calls that a model's tools put off: whether they may be made, or what they come to, is asked of people."""

from collections import Counter
from hashlib import sha256

from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied

from segue.core.contracts.agents import Work
from segue.core.questions import LONGEST, YES
from segue.errors import Invalid, Unanswered

_SHOWN = LONGEST - 500
"""Characters of a call's arguments that people are shown."""
DENIED = "The person said no."


class Deferred:
    """Asks about the calls of one attempt at a turn."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._asked: Counter[str] = Counter()

    async def results(self, requests: DeferredToolRequests) -> DeferredToolResults:
        """The answers, one after the other."""
        results = DeferredToolResults()
        for call in requests.approvals:
            results.approvals[call.tool_call_id] = await self._approval(call)
        for call in requests.calls:
            results.calls[call.tool_call_id] = await self._outcome(call)
        return results

    async def _approval(self, call: ToolCallPart) -> ToolApproved | ToolDenied:
        """Whether a call may be made: nothing is done without a yes."""
        try:
            said = await self._work.ask(f"May I use {_shown(call)}?", key=self._key(call), allows=call.tool_name)
        except Invalid as error:
            return ToolDenied(str(error))
        return ToolApproved() if said == YES else ToolDenied(DENIED)

    async def _outcome(self, call: ToolCallPart) -> str:
        """The result of a call that somebody else makes."""
        try:
            return await self._work.ask(f"What does {_shown(call)} come to?", key=self._key(call))
        except (Invalid, Unanswered) as error:
            return str(error)

    def _key(self, call: ToolCallPart) -> str:
        """The same in every attempt at the turn: a model that is asked again gives its calls new ids."""
        written = f"{call.tool_name} {call.args_as_json_str()}"
        self._asked[written] += 1
        return f"{call.tool_name}/{sha256(written.encode()).hexdigest()[:32]}/{self._asked[written]}"


def _shown(call: ToolCallPart) -> str:
    arguments = call.args_as_dict()
    shown = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return f"{call.tool_name}({shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'})"
