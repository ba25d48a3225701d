"""Commands that change what was said: all take their place in the session's queue; /stop acts at once."""

from segue.changes.commands.consent import Consents
from segue.changes.commands.request import Answer, Request, bound, called, line_of, quoted, short
from segue.changes.exchange import quotes, turns
from segue.changes.sessions import deletions, moves, readings, sessions, transcripts
from segue.changes.sessions.moves import Last
from segue.core.contracts.database import Ids, Transaction
from segue.core.lanes import Rules
from segue.core.messages import Compress, Order, Redo, Retry, Rewind, Undo
from segue.core.moves import Limits, Resume, Why
from segue.core.people import OWNERS, Standing, authorize
from segue.core.transcripts import Entry, Role, Tip, TipMove
from segue.core.turns import TurnKind
from segue.core.values import Moment
from segue.errors import Refusal, Refused

UNASKED = frozenset({Why.FIRST, Why.IDLE, Why.DAILY, Why.SPAWN})
"""Moves that nobody typed: a first message makes one, resets go with the message that caused them."""


class TranscriptCommands:
    """Moves the tip of the session that the lane speaks to."""

    def __init__(self, consents: Consents, limits: Limits, rules: Rules, ids: Ids) -> None:
        self._consents = consents
        self._limits = limits
        self._rules = rules
        self._ids = ids

    def undo(self, request: Request) -> Transaction[Answer]:
        """Take back the newest of this lane's last move and its session's last exchange; a number counts exchanges."""
        count = _count(request.rest)
        if count is None:
            return Answer("Type /undo, or /undo N to take back the last N exchanges.")
        if not count and (back := (yield from self._shown_again(request))):
            return back
        move = None if count else (yield from moves.last_move(request.lane))
        # What came together with a move, such as the words of `/new TEXT`, came after it.
        if move is None or (yield from _unasked(move)) or move.at <= (yield from _last_said(request)):
            return (yield from _queued(request, TurnKind.UNDO, Undo(count)))
        yield from moves.undo(move.id, request.met.person.id, self._limits, self._ids(), request.at)
        now = yield from sessions.bound(request.lane)
        where = f"You are in {yield from called(request, now.id)}." if now else "No session is open here now."
        return Answer(f"Took back the last move: {move.kind}. {where}")

    def redo(self, request: Request) -> Transaction[Answer]:
        """Take back the last undo, of a move or of exchanges, whichever is newer."""
        session = yield from sessions.bound(request.lane)
        undone = (yield from transcripts.tip_changes(session.id, 1)) if session else []
        left = yield from moves.last_undo(request.lane)
        if left is not None and left.at > max((yield from _last_said(request)), undone[0].at if undone else 0.0):
            question = yield from self._consents.move(request, Resume(request.lane, left.session))
            return question or Answer(f"You are in {yield from called(request, left.session)} again.")
        last = undone[0] if undone and undone[0].why is TipMove.UNDO else None
        if session is None or last is None or last.before is None or last.after != session.tip:
            raise Refused(Refusal.NOTHING_TO_REDO)
        if (yield from readings.missed(session.id, request.met.person.id, last.before)):
            # It was taken back before others came to read along.
            raise Refused(Refusal.NOTHING_TO_REDO)
        to, back = last.before, last.after
        order = Redo(to.session, to.n, back.session if back else "", back.n if back else 0)
        return Answer(ask=(order,), kind=TurnKind.REDO, session=session.id)

    def _shown_again(self, request: Request) -> Transaction[Answer | None]:
        """Take back that something was taken back on the platform, if that was the last thing here."""
        person, session = request.met.person.id, (yield from sessions.bound(request.lane))
        gone = (yield from deletions.last(session.id, person)) if session else None
        move = yield from moves.last_move(request.lane)
        if gone is None or gone.since <= max(move.at if move else 0.0, (yield from _last_said(request))):
            return None
        yield from deletions.undo(gone, person, request.at)
        return Answer("What you deleted counts again.")

    def retry(self, request: Request) -> Transaction[Answer]:
        return (yield from _queued(request, TurnKind.RETRY, Retry()))

    def rewind(self, request: Request) -> Transaction[Answer]:
        if request.rest:
            return (yield from _numbered(request))
        to = yield from quoted(request, self._rules)
        if to is None:
            return Answer(
                "Reply with /rewind to the message that you want to go back to, or type /rewind N: /tree numbers them."
            )
        entry = yield from quotes.entry(to.address, to.message)
        session = yield from sessions.bound(to.lane)
        # Whoever has no session here learns nothing about what others said.
        if entry is None or session is None:
            raise Refused(Refusal.NO_SUCH_MESSAGE)
        if to.lane != request.lane:
            # Who may was asked about the thread, which speaks to nobody yet.
            own = session.owner == request.met.person.id or request.standing is Standing.HOST
            authorize(request.standing if own else Standing.PARTICIPANT, OWNERS)
        if (yield from readings.missed(session.id, request.met.person.id, entry)):
            raise Refused(Refusal.UNREAD if request.here_alone else Refusal.NO_SUCH_MESSAGE)
        order = Rewind(entry.session, entry.n)
        return Answer(ask=(order,), kind=TurnKind.REWIND, session=session.id, lane=to.lane)

    def compress(self, request: Request) -> Transaction[Answer]:
        return (yield from _queued(request, TurnKind.COMPRESS, Compress(request.rest)))

    def stop(self, request: Request) -> Transaction[Answer]:
        person, session = request.met.person.id, (yield from bound(request)).id
        stop = turns.stop_anybodys if request.standing is Standing.HOST else turns.stop
        if not (yield from stop(session, person)):
            # What was asked here may still run in a session that this place has left.
            left = yield from turns.left_running(request.lane, person)
            if left is None or not (yield from turns.stop(left, person)):
                return Answer("Nothing of yours is running.")
            session = left
        return Answer()


def _numbered(request: Request) -> Transaction[Answer]:
    """Go back to an entry of the session's own, by its number."""
    session, entry = (yield from bound(request)), None
    if request.rest.isdecimal():
        entry = yield from transcripts.entry(Tip(session.id, line_of(request.rest)))
    person = request.met.person.id
    missed = entry is not None and (yield from readings.missed(session.id, person, entry.tip))
    if missed and request.here_alone:
        raise Refused(Refusal.UNREAD)
    if entry is None or missed:
        return Answer(f"No message here has the number {short(request.rest)}. /tree numbers them.")
    order = Rewind(session.id, entry.tip.n)
    return Answer(ask=(order,), kind=TurnKind.REWIND, session=session.id)


def _unasked(move: Last) -> Transaction[bool]:
    """Whether nobody typed a move; a thread that begins as a fork of its private chat forks by itself."""
    if move.why is Why.FORK:
        made = yield from moves.made_by(move.id)
        return all(step.before is None for step in made)
    return move.why in UNASKED


def _last_said(request: Request) -> Transaction[Moment]:
    """When somebody last said something in the lane's session, answered or not."""
    session = yield from sessions.bound(request.lane)
    if session is None:
        return 0.0
    # What the agent says unasked, such as the opening of a handoff, begins no exchange.
    path = yield from transcripts.path(session.tip, lambda newest: any(map(_by_person, newest)))
    said = [entry.at for entry in path if _by_person(entry)]
    waiting = yield from turns.backlog(session.id)
    return max(said[-1] if said else 0.0, waiting.last or 0.0)


def _by_person(entry: Entry) -> bool:
    return entry.author.role is Role.PERSON


def _count(typed: str) -> int | None:
    """The number of exchanges that an undo names, 0 if it names none; None if it isn't a number above 0."""
    if not typed:
        return 0
    return (int(typed) or None) if typed.isdecimal() and len(typed) < 6 else None


def _queued(request: Request, kind: TurnKind, order: Order) -> Transaction[Answer]:
    """A turn that moves the tip when all before it is answered."""
    session = yield from bound(request)
    return Answer(ask=(order,), kind=kind, session=session.id)
