"""One prompt of an ACP agent: its updates as the events of an answer, its questions as questions to a person."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from hashlib import sha256
from typing import Any

from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    CreateElicitationResponse,
    DeclineElicitationResponse,
    DeniedOutcome,
    PermissionOption,
    PromptResponse,
    RequestPermissionResponse,
    ToolCallUpdate,
    UsageUpdate,
)

from segue.agents.acp.calls import called, whole
from segue.agents.acp.forms import fill
from segue.agents.acp.narration import Narration
from segue.agents.acp.subagents import Announced, Delegates
from segue.core.contracts.agents import Event, Titled, Usage, Work
from segue.core.prompt.envelopes import gateway_line
from segue.core.questions import LONGEST, NO, YES
from segue.errors import Invalid, Unanswered

log = logging.getLogger(__name__)

MOST_WAITING = 100
"""Updates that wait for a turn that can't take them, such as while the database is away."""
_BEGINS, _GATEWAY = 40, len('{"gateway":')
"""Characters by which a title is known as words of ours."""
_ONCE, _ALWAYS, _NOT, _NEVER = "allow_once", "allow_always", "reject_once", "reject_always"


class AcpTurn:
    """A prompt that runs in a session of the agent's."""

    def __init__(self, work: Work, model: str, cost: float) -> None:
        self.work = work
        self._model = model
        self._updates: asyncio.Queue[tuple[Any, str] | None] = asyncio.Queue()
        self._has_room = asyncio.Event()
        """Set while few updates wait, and once nobody takes them any more."""
        self._has_room.set()
        self._left = False
        self._own = Narration(work.files)
        self._delegates = Delegates(work.files)
        self._asked: Counter[str] = Counter()
        self._asking: set[asyncio.Task[Any]] = set()
        self._cancelled = False
        self.cost = cost
        """The cost of the agent's whole session in dollars, as it was told last."""
        self._spent = 0.0

    def heard(self, update: Any, by: str) -> None:
        """The agent told something, or a sub-agent of it did."""
        if self._left:
            return
        self._updates.put_nowait((update, by))
        if self._updates.qsize() >= MOST_WAITING:
            self._has_room.clear()

    async def room(self) -> None:
        """Wait until few updates are waiting; until then nothing more is read from the agent."""
        await self._has_room.wait()

    def leave(self) -> None:
        """Nobody takes its updates any more."""
        self._left = True
        self._has_room.set()

    def over(self) -> None:
        """Nothing more comes."""
        self._updates.put_nowait(None)
        self.cancel()

    def cancel(self) -> None:
        """Nobody is to answer any more; the agent is told so."""
        self._cancelled = True
        for task in self._asking:
            task.cancel()

    async def events(self) -> AsyncGenerator[Event, None]:
        """All that the agent tells, until nothing more comes."""
        while (heard := await self._updates.get()) is not None:
            if self._updates.qsize() < MOST_WAITING // 2:
                self._has_room.set()
            update, by = heard
            if isinstance(update, UsageUpdate) and not by:
                self._costs(update)
            source = self._delegates.take(update, by) if by or isinstance(update, Announced) else self._own.take(update)
            async with aclosing(source) as events:
                async for event in events:
                    if not (isinstance(event, Titled) and self._is_ours(event.title)):
                        yield event
        for event in (*self._delegates.rest(), *self._own.rest()):
            yield event

    def usage(self, done: PromptResponse) -> Usage | None:
        """The cost of the prompt, where the agent tells it."""
        spent, cost = done.usage, self._spent or None
        if spent is None:
            return Usage(self._model, cost=cost) if cost else None
        read, written = spent.cached_read_tokens or 0, spent.cached_write_tokens or 0
        # ACP counts tokens of the cache beside the input.
        whole = spent.input_tokens + read + written
        thoughts = spent.thought_tokens or 0
        return Usage(self._model, whole, spent.output_tokens + thoughts, thoughts, read, written, cost)

    def _is_ours(self, title: str) -> bool:
        """Whether a title is only the beginning of what the agent was told first: of the place, or by the gateway."""
        begins = " ".join(title.rstrip("….").split())[:_BEGINS]
        return begins.startswith(gateway_line("")[:_GATEWAY]) or begins in " ".join(self.work.context.split())

    def _costs(self, told: UsageUpdate) -> None:
        """The agent told what its session has cost."""
        if told.cost is not None and told.cost.currency == "USD":
            # One that counts anew after a restart says less than it did before.
            amount, before = told.cost.amount, self.cost
            self._spent += amount - before if amount >= before else amount
            self.cost = amount

    async def permit(self, call: ToolCallUpdate, options: list[PermissionOption], by: str) -> RequestPermissionResponse:
        """Ask the person whether the agent may do something; nobody's answer is a no.

        The question shows the whole call, and an answer counts for that very call.
        """
        calls = (self._delegates.narration(by) or self._own).calls
        calls.heard(call)
        known = calls.known(call.tool_call_id)
        shown, digest = whole(known)
        kinds = Counter(option.kind for option in options)
        plain = max(kinds.values(), default=0) < 2 and _ONCE in kinds
        words = f"May I do this? {shown}"
        key = self._key(f"{digest}\n{[option.name for option in options]}")
        if plain:
            answer = await self._ask(words, (), key, f"{called(known)} [{digest}]")
            wanted = (_ONCE,) if answer == YES else (_NOT, _NEVER)
            chosen = next((one for kind in wanted for one in options if one.kind == kind), None)
        else:
            names = {f"{option.name}"[:150].replace("\n", " "): option for option in options}
            offered = (*names, *(() if NO in {name.casefold() for name in names} else (NO,)))
            answer = await self._ask(words, offered, key, "")
            chosen = names.get(answer or "") or next((one for one in options if one.kind in (_NOT, _NEVER)), None)
        if chosen is None or self._cancelled:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id))

    async def elicit(self, message: str, mode: Any) -> CreateElicitationResponse:
        """Ask the person what the agent wants to know, a field after the other."""
        if (url := getattr(mode, "url", None)) is not None:
            words = f"{message}\n{url}\nSay yes once that is done."[:LONGEST]
            if await self._ask(words, (YES, NO), self._key(words), "") == YES:
                return AcceptElicitationResponse(action="accept")
            return DeclineElicitationResponse(action="decline")

        async def ask(words: str, choices: tuple[str, ...]) -> str | None:
            return await self._ask(words[:LONGEST], choices, self._key(words), "")

        content = await fill(message, mode.requested_schema, ask)
        if content is None:
            return DeclineElicitationResponse(action="decline")
        return AcceptElicitationResponse(action="accept", content=content)

    def _key(self, about: str) -> str:
        """A question's name: the same for the same request in a later attempt, and never that of another request."""
        self._asked[about] += 1
        return f"acp/{sha256(about.encode(errors='replace')).hexdigest()[:32]}/{self._asked[about]}"

    async def _ask(self, words: str, choices: tuple[str, ...], key: str, allows: str) -> str | None:
        """The person's answer; None if there is none."""
        task = asyncio.create_task(self._answer(words, choices, key, allows))
        self._asking.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if not self._cancelled:
                raise
            return None  # the agent waits for an answer, also when its turn is over
        finally:
            self._asking.discard(task)

    async def _answer(self, words: str, choices: tuple[str, ...], key: str, allows: str) -> str | None:
        try:
            return await self.work.ask(words, choices, key=key, allows=allows)
        except Unanswered:
            return None
        except Invalid as error:
            log.warning("the agent asked what nobody can be asked: %s", error)
            return None
