"""A turn that runs here: what is known of it meanwhile, and how it is ended."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from segue.core.contracts.agents import AgentState, NoBudget, Reserves, SubAgent, Titled, Usage, Work
from segue.core.lanes import Address
from segue.core.messages import File, Notice, encode_parts
from segue.core.text.splitting import Fits, split
from segue.core.transcripts import GATEWAY, NOTHING, Author, Draft, Role
from segue.core.turns import Beginning, Finish, Outcome, Reply, Run, Turn, TurnKind, draft_of
from segue.core.values import Moment
from segue.runtime.cancelling import surely
from segue.runtime.turns.said import Said
from segue.runtime.turns.subagents import SubAgents


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
        self.beneath = SubAgents()
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
        until = whole.when() if whole is not None else None
        left = until - loop.time() if until is not None else None
        self.asked = True
        self.asks += 1
        if whole is not None and left is not None:
            whole.reschedule(None)
        try:
            with self.calling(patience):
                yield
        finally:
            self.asks -= 1
            # Whatever asked may end after the turn did.
            if whole is not None and left is not None and self.whole is whole and not whole.expired():
                whole.reschedule(loop.time() + left)

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
