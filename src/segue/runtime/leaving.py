"""What a turn leaves behind: entries, and the messages that carry them to where it was asked."""

from __future__ import annotations

from segue.core.contracts import Longest
from segue.core.lanes import Address
from segue.core.messages import Notice
from segue.core.splitting import split
from segue.core.transcripts import AGENT, GATEWAY, Draft
from segue.core.turns import Finish, Outcome, Reply, Run, Streamed, Turn
from segue.runtime.beginnings import Beginning, draft_of
from segue.runtime.running import Running
from segue.runtime.said import Said

STOPPED = "(Stopped.)"


def answered(live: Running, said: Said, streamed: Streamed, longest: Longest | None) -> Finish:
    """All that a turn leaves behind."""
    run = live.run
    turns = (*run.turns, *live.taken_in)
    drafts = [*live.begun.asked, *(draft_of(turn) for turn in live.taken_in)]
    text, shown, outcome = said.text, 0, Outcome.ANSWERED
    if said.parts:
        drafts.append(Draft(AGENT, tuple(said.parts)))
        shown = len(drafts)
    if live.stopping:
        text, outcome = f"{text}\n\n{STOPPED}".strip(), Outcome.STOPPED
        drafts.append(Draft(GATEWAY, (Notice(STOPPED),)))
    replies = replies_to(run, tuple(live.taken_in), text, shown, longest)
    seqs = tuple(turn.seq for turn in turns)
    return Finish(seqs, tuple(drafts), replies, tuple(live.spent), outcome, None, streamed, live.begun.onto)


def notice(run: Run, begun: Beginning) -> Finish:
    """What the gateway did by itself, and says."""
    seqs = tuple(turn.seq for turn in run.turns)
    return Finish(seqs, (), replies_to(run, (), begun.notice, 0, None), onto=begun.onto)


def replies_to(
    run: Run, taken_in: tuple[Turn, ...], text: str, shown: int, longest: Longest | None
) -> tuple[Reply, ...]:
    """The messages that carry a text to where it was asked."""
    route = run.turns[-1].route
    if not text or not route:
        return ()
    answers = tuple(turn.message for turn in (*run.turns, *taken_in) if turn.message)
    pieces = split(text, longest) if longest else [text]
    return tuple(Reply(Address.parse(route), piece, shown, answers) for piece in pieces)
