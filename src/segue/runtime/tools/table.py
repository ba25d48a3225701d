"""The table of tools, and the tools of one turn: bound to its session, its claim and its person.

Law: a call that can't be done is a failed result that says why and what to do; it is never an error of the turn.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from typing import Any, TypeVar

import msgspec

from segue.changes.exchange.children import Asker
from segue.core.contracts.agents import Questions, Tool
from segue.core.messages import ToolCall, ToolResult
from segue.core.settings import GatewaySettings, chosen_tools
from segue.core.values import Live, PersonId, Value
from segue.errors import Invalid, Refusal, Refused
from segue.runtime.tools.arguments import schema_of, take
from segue.runtime.turns.running import Running

A = TypeVar("A", bound=Value)

_WORDS = {
    Refusal.NOT_FOUND: "No session of yours goes by that. sessions_list shows them.",
    Refusal.CLOSED: "That session is closed. sessions_history still shows it; sessions_spawn starts another.",
}
"""Words for an agent where people are told to type a command."""


class Calling(Live, frozen=True):
    """One call of a tool: which turn makes it, and the key that it has in every attempt at that turn."""

    asker: Asker
    key: str
    waiting: Callable[[], AbstractAsyncContextManager[None]]
    """Around a wait for another session: the turn holds no slot meanwhile."""
    ask: Questions
    agent: str
    """The name of the agent that makes it."""


class Offer:
    """A tool: what the model reads of it, the arguments that it takes, and what is done."""

    def __init__(self, name: str, does: str, arguments: type[A], run: Callable[[Calling, A], Awaitable[Any]]) -> None:
        self.tool = Tool(name, does, schema_of(arguments))
        self.arguments = arguments
        self.run: Callable[[Calling, Any], Awaitable[Any]] = run


async def performed(
    offers: Mapping[str, Offer], call: ToolCall, run: Callable[[Offer, Any], Awaitable[Any]]
) -> ToolResult:
    """The result of a call, whoever makes it: it is run with its arguments, if they are right."""
    offer = offers.get(call.name)
    if offer is None:
        fix = f"There are {', '.join(offers)}." if offers else "There is none."
        return ToolResult(call.id, f"There is no tool {call.name}. {fix}", failed=True)
    try:
        content = await run(offer, take(call.arguments, offer.arguments))
    except Refused as refused:
        return ToolResult(call.id, _WORDS.get(refused.why, str(refused)), failed=True)
    except Invalid as invalid:
        return ToolResult(call.id, str(invalid), failed=True)
    return ToolResult(call.id, content)


class Toolbox:
    """The tools that there are; a turn gets them bound to itself."""

    def __init__(self, offers: Iterable[Offer], notebook: Iterable[Offer] = ()) -> None:
        self.offers = {offer.tool.name: offer for offer in offers}
        self.with_notebook = self.offers | {offer.tool.name: offer for offer in notebook}
        """The same where an agent has a notebook."""

    def only(self, chosen: Collection[str] | None) -> "Toolbox":
        """The same with the tools that a choice leaves."""
        names, noted = chosen_tools(chosen, self.offers), chosen_tools(chosen, self.with_notebook)
        return Toolbox((self.offers[name] for name in names), (self.with_notebook[name] for name in noted))


class BoundTools:
    """The tools of one attempt at a turn, used on behalf of the turn's person."""

    def __init__(
        self,
        offers: Mapping[str, Offer],
        live: Running,
        settings: GatewaySettings,
        waiting: Callable[[], AbstractAsyncContextManager[None]],
        ask: Questions,
        check: Callable[[], Awaitable[None]],
    ) -> None:
        self._offers = offers
        self._check = check
        self._ask = ask
        self._live = live
        self._settings = settings
        self._waiting = waiting
        self._made: Counter[str] = Counter()
        self._results: dict[str, asyncio.Future[ToolResult]] = {}
        self._journal = {part.id: part for part in live.run.journal if isinstance(part, ToolResult)}
        self.offered = tuple(offer.tool for offer in self._offers.values())

    async def call(self, call: ToolCall) -> ToolResult:
        """Run one; the same call id gives the same result, also that of an earlier attempt."""
        if not call.id:
            return await self._call(call)
        if call.id in self._journal:
            return self._journal[call.id]
        known = self._results.get(call.id)
        if known is None:
            known = self._results[call.id] = asyncio.ensure_future(self._call(call))
        try:
            return await known
        except asyncio.CancelledError:
            known.cancel()
            raise

    def end(self) -> None:
        """The turn is over: what it still asks for is dropped."""
        for result in self._results.values():
            result.cancel()

    async def _call(self, call: ToolCall) -> ToolResult:
        async def run(offer: Offer, arguments: Value) -> Any:
            with self._live.calling(self._settings.turn_silence):
                await self._check()
                key = self._key(call.name, arguments)
                calling = Calling(self._asker(), key, self._waiting, self._ask, self._live.agent_name)
                return await offer.run(calling, arguments)

        return await performed(self._offers, call, run)

    def _asker(self) -> Asker:
        run, first = self._live.run, self._live.run.turns[0]
        return Asker(
            run.held,
            run.name,
            PersonId(first.person),
            first.name,
            first.cause or f"{run.held.session}/{run.name}",
            first.trace,
            agent=self._live.agent_name,
        )

    def _key(self, name: str, arguments: Value) -> str:
        """The same in every attempt at the turn.

        A model that is asked again gives its calls new ids, so the id can't be the key: it is how many calls of this
        tool with these very arguments the attempt has made. Of two calls that are the same it doesn't matter which is
        which. An attempt begins to count anew although its journal shows earlier calls: an agent that asks for the
        same once more gets the first result again, rather than one that starts over starting everything twice.
        """
        written = msgspec.json.encode(arguments, order="deterministic")
        same = f"{name}/{sha256(written).hexdigest()[:32]}"
        self._made[same] += 1
        return f"{self._live.run.held.session}/{self._live.run.name}/{same}/{self._made[same]}"
