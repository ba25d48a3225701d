"""A turn that runs here: what is known of it meanwhile, and how it is ended."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import UnionType

from segue.core.contracts.agents import AgentState, NoBudget, Reserves, SubAgent, Titled, Usage, Work
from segue.core.contracts.database import Ids
from segue.core.lanes import Address, clean_name
from segue.core.messages import File, Notice, Part, Parts, Reasoning, Sent, Text, ToolCall, ToolResult, encode_parts
from segue.core.text.splitting import Fits, split
from segue.core.transcripts import GATEWAY, NOTHING, Author, Draft, Role
from segue.core.turns import Beginning, Beneath, Finish, Outcome, Reply, Run, Turn, TurnKind, draft_of
from segue.core.values import Moment, SessionId
from segue.runtime.cancelling import surely


class Hung(Exception):
    """The agent said nothing for too long."""


class Quit(Exception):
    """The agent tried to end the process that it runs in."""


class Running:
    """A turn that runs here."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.begun = Beginning(NOTHING, tuple(draft_of(turn) for turn in run.turns))
        self.answering: asyncio.Task[None] | None = None
        self.stopping = any(turn.stopped_by for turn in run.turns)
        self.dropped = False
        """Whether nobody wants its answer any more."""
        self.silence: asyncio.Timeout | None = None
        """When the agent counts as hung, while it is waited for."""
        self.whole: asyncio.Timeout | None = None
        """The end of the time that this try may take."""
        self.calls = 0
        """Calls that the gateway makes for the agent now."""
        self.asks = 0
        """Questions whose answers it waits for now."""
        self._left: float | None = None
        """Seconds that were left to this try when the first of them was asked, if its time is limited."""
        self.asked = run.asked
        """Whether anything was asked, in whichever attempt."""
        self.changed = asyncio.Event()
        """Set when somebody may have answered."""
        self.work: Work | None = None
        self.agent: object = None
        self.agent_name = ""
        self.noting: str | None = None
        """The agent's name, if it is one that keeps notes."""
        self.state: str | None = None
        """The agent's own note about the session, as JSON."""
        self.title = ""
        """The title that the agent found for the session."""
        self.beneath: SubAgents | None = None
        """Those that the agent let work for it, if it did."""
        self.told: Moment | None = None
        """When what hangs on it was last told that it grows."""
        self.telling: asyncio.Task[None] | None = None
        self.budget: Reserves = NoBudget()
        self.reserved = False
        """Whether it has reserved from budgets."""
        self.spent: list[Usage] = []
        """The cost of this try."""
        self.taken_in: list[Turn] = []
        """Messages of its person that came meanwhile and that the agent took in."""
        self.said = Said(run.journal)
        self.address = Address.parse(run.turns[-1].route) if run.turns and run.turns[-1].route else None
        """Where its answer goes."""
        self.account = (self.address.platform, self.address.account) if self.address else ("", "")
        self.origin = self.address
        """The place whose account, agent, tools and approvers hold for it: where what it comes of was asked."""

    @property
    def governed(self) -> tuple[str, str]:
        """The account whose tools and approvers hold for it."""
        return (self.origin.platform, self.origin.account) if self.origin else ("", "")

    @contextmanager
    def calling(self, patience: float) -> Iterator[None]:
        """While the gateway does what the agent asked for, its silence is no sign of trouble."""
        self.calls += 1
        self._listen(None)
        try:
            yield
        finally:
            self.calls -= 1
            if not self.calls:
                self._listen(asyncio.get_running_loop().time() + patience)

    @contextmanager
    def asking(self, patience: float) -> Iterator[None]:
        """While a person is asked something, no time passes for the turn."""
        loop, whole = asyncio.get_running_loop(), self.whole
        self.asked = True
        self.asks += 1
        if self.asks == 1:
            until = whole.when() if whole is not None else None
            self._left = until - loop.time() if until is not None else None
            if whole is not None:
                whole.reschedule(None)
        try:
            with self.calling(patience):
                yield
        finally:
            self.asks -= 1
            # Whatever asked may end after the turn did.
            if not self.asks and self._left is not None and self.whole is whole is not None and not whole.expired():
                whole.reschedule(loop.time() + self._left)

    def _listen(self, until: float | None) -> None:
        if self.silence is not None and not self.silence.expired():
            self.silence.reschedule(until)

    def note(self, told: Usage | AgentState | Titled | SubAgent) -> None:
        """Note what an agent tells beside its answer."""
        match told:
            case Usage():
                self.spent.append(told)
            case AgentState():
                self.state = encode_parts((told.value,))
            case Titled():
                self.title = told.title
            case SubAgent():
                self.beneath = self.beneath or SubAgents()
                self.beneath.add(told)

    def stop(self) -> None:
        """End it; what was said so far is kept."""
        self.stopping = True
        if self.answering is not None:
            self.answering.cancel()


async def until_stopped(live: Running, answer: Callable[[], Awaitable[None]]) -> None:
    """Do it to its end, or until its person ends it."""
    live.answering = asyncio.create_task(surely(partial(_contained, live.run, answer)))
    if live.stopping:
        live.answering.cancel()
    try:
        await live.answering
    except asyncio.CancelledError:
        if not live.stopping or cancelled():
            raise


async def _contained(run: Run, answer: Callable[[], Awaitable[None]]) -> None:
    """Do it, and let nothing of it end the process: a task that is told to exit takes the event loop along."""
    if task := asyncio.current_task():
        task.set_name(f"turn {run.name} of session {run.held.session}, trace {run.turns[0].trace}")
    try:
        await answer()
    except SystemExit as error:
        raise Quit("the agent tried to end the process") from error


def cancelled() -> bool:
    """Whether somebody wants the task that runs this to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


STOPPED = "(Stopped.)"
NOTHING_SAID = "(It finished without a word.)"
SPOKEN = frozenset({TurnKind.ARRIVAL, TurnKind.RETRY})
"""Turns that somebody's words are the start of; no other is theirs to steer or to interrupt."""


def answered(live: Running, fits: Fits | None) -> Finish:
    """All that a turn leaves behind."""
    run, said = live.run, live.said
    turns = (*run.turns, *live.taken_in)
    drafts = [*live.begun.asked, *(draft_of(turn) for turn in live.taken_in)]
    text, shown, outcome = said.text, 0, Outcome.ANSWERED
    if said.parts:
        drafts.append(Draft(Author(Role.AGENT, name=live.agent_name), tuple(said.parts)))
        shown = len(drafts)
    if live.stopping:
        text, outcome = f"{text}\n\n{STOPPED}".strip(), Outcome.STOPPED
        drafts.append(Draft(GATEWAY, (Notice(STOPPED),)))
        shown = shown or len(drafts)  # where nothing was said before it, it is what the reply shows
    elif not text and run.turns[0].kind in SPOKEN and not any(isinstance(part, File) for part in said.parts):
        # Whoever asked would wait for ever.
        text = NOTHING_SAID
        drafts.append(Draft(GATEWAY, (Notice(NOTHING_SAID),)))
        shown = len(drafts)
    files = list(dict.fromkeys(part for part in said.parts if isinstance(part, File)))
    replies = replies_to(run, tuple(live.taken_in), text, shown, fits, files)
    seqs = tuple(turn.seq for turn in turns)
    return Finish(seqs, tuple(drafts), replies, tuple(live.spent), outcome, None, live.begun.onto)


def notice(run: Run, begun: Beginning) -> Finish:
    """The end of a turn that the gateway answers by itself."""
    seqs = tuple(turn.seq for turn in run.turns)
    return Finish(seqs, (), replies_to(run, (), begun.notice, 0, None), onto=begun.onto)


def replies_to(
    run: Run,
    taken_in: tuple[Turn, ...],
    text: str,
    shown: int,
    fits: Fits | None,
    files: Sequence[File] = (),
) -> tuple[Reply, ...]:
    """The messages that carry a text, and then each file, to where it was asked."""
    route = run.turns[-1].route
    if not route:
        return ()
    address = Address.parse(route)
    answers = tuple(turn.message for turn in (*run.turns, *taken_in) if turn.message)
    pieces = split(text, fits) if fits else [text] if text else []
    said = [Reply(address, piece, shown, answers) for piece in pieces]
    return (*said, *(Reply(address, "", shown, answers, file) for file in files))


class Said:
    """The words of an agent so far in a turn; pieces are joined only when somebody looks."""

    def __init__(self, journal: tuple[Part, ...]) -> None:
        self._parts: list[Part] = list(journal)
        self._pieces: list[str] = []
        """Pieces of the text that the last part is to be."""
        self._kept = len(journal)
        """Parts before which nothing has to be journaled any more."""
        self._known = {part.id for part in journal if isinstance(part, ToolCall)}
        """Calls that are journaled."""

    def add(self, part: Part) -> None:
        """One thing more; pieces of text that follow each other are one text."""
        if not isinstance(part, Text):
            self.parts.append(part)
            self._pieces = []
        elif not self._pieces:
            self._parts.append(part)
        if isinstance(part, Text):
            self._pieces.append(part.text)

    @property
    def parts(self) -> list[Part]:
        """All of it, in order."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
            self._parts[-1] = Text(self._pieces[0])
        return self._parts

    @property
    def text(self) -> str:
        """The words a person reads."""
        return "\n\n".join(p.text.strip() for p in self.parts if isinstance(p, Text | Notice) and p.text.strip())

    def done(self, result: ToolResult) -> Parts:
        """A result as it is journaled: with its call, and the thoughts before that, if they aren't yet."""
        return (*self._call(result.id, Reasoning), result)

    def put_off(self, calls: Sequence[str]) -> Parts:
        """Calls that wait, as they are journaled: their model isn't asked again, so with its words."""
        return tuple(part for id in calls for part in self._call(id, Reasoning | Text))

    def _call(self, id: str, with_it: type[Part] | UnionType) -> Parts:
        """A call and what stands before it, unless it is journaled: providers refuse a call without its thoughts."""
        parts = self.parts
        at = next((n for n in reversed(range(len(parts))) if _calls(parts[n], id)), None)
        if at is None or id in self._known:
            return ()
        self._known.add(id)
        found = [part for part in parts[self._kept : at] if isinstance(part, with_it)]
        self._kept = max(self._kept, at)
        return (*found, parts[at])


def _calls(part: Part, id: str) -> bool:
    return isinstance(part, ToolCall) and part.id == id


class SubAgents:
    """Those of a turn that runs."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[SubAgent, list[str | Said]]] = {}
        """By id: what was last told of each, and what it was asked and said in turn."""

    def add(self, told: SubAgent) -> None:
        """One thing more."""
        last, talk = self._known.get(told.id, (told, list[str | Said]()))
        self._known[told.id] = told if told.name else last, talk
        if isinstance(told.part, Sent):
            talk.append(told.part.text)
            return
        if not talk or isinstance(talk[-1], str):
            talk.append(Said(()))
        assert isinstance(talk[-1], Said)  # noqa: S101 -- it was put there
        talk[-1].add(told.part)

    def sessions(self, run: Run, agent: str, ids: Ids) -> tuple[Beneath, ...]:
        """Their sessions, each after the one of whoever gave it the work."""
        made: dict[str, SessionId] = {}
        found: list[Beneath] = []
        for id, (last, talk) in self._known.items():
            made[id] = SessionId(ids())
            drafts = tuple(
                Draft(GATEWAY, (Text(said),)) if isinstance(said, str) else Draft(_author(agent), tuple(said.parts))
                for said in talk
            )
            found.append(Beneath(made[id], made.get(last.above, run.held.session), clean_name(last.name), drafts))
        return tuple(found)


def _author(agent: str) -> Author:
    return Author(Role.AGENT, name=agent)
