"""Transcripts: entries are added at the tip, paths are read back from it, tips move and nothing is deleted."""

from collections.abc import Sequence

from segue.changes.rows import each, first, one
from segue.changes.sessions.rows import End
from segue.core.bindings import TipChange
from segue.core.contracts.database import Statement, Transaction
from segue.core.messages import Summary, encode_parts
from segue.core.transcripts import (
    GATEWAY,
    Draft,
    Enough,
    Entry,
    Session,
    Tip,
    TipMove,
    back_past,
    before_answer,
    before_exchange,
    covers_summary,
    exchanges,
)
from segue.core.values import Moment, PersonId, SessionId
from segue.database.statements import q
from segue.errors import Invalid, Refusal, Refused

_CHUNK = 64
_LARGEST_CHUNK = 1024


def add(
    session: SessionId, parent: Tip | None, length: int, drafts: Sequence[Draft], at: Moment, turn: int
) -> Transaction[Tip | None]:
    """Write entries after `parent`; the caller holds the session and then sets its tip."""
    for n, draft in enumerate(drafts, length + 1):
        yield q.add_entry(
            session=session,
            n=n,
            parent_session=parent.session if parent else None,
            parent=parent.n if parent else None,
            role=draft.author.role,
            person=draft.author.person,
            name=draft.author.name,
            parts=encode_parts(draft.parts),
            at=at if draft.at is None else draft.at,
            turn=turn,
            identity=draft.source.identity,
            address=draft.source.address,
        )
        parent = Tip(session, n)
    return parent


def append(session: SessionId, drafts: Sequence[Draft], at: Moment, turn: int = 0) -> Transaction[Tip | None]:
    """Add entries at the tip; they belong to a turn if they say what it said in other words."""
    end = yield from _hold(session)
    tip = yield from add(session, end.tip, end.length, drafts, at, turn)
    yield set_tip(session, tip, end.length + len(drafts), at)
    return tip


def path(tip: Tip | None, enough: Enough | None = None, chunk: int = _CHUNK) -> Transaction[list[Entry]]:
    """The entries up to a tip, oldest first; with `enough`, only as far back as that takes, so many at first."""
    newest_first: list[Entry] = []
    while tip is not None:
        entries = yield from each(Entry, q.entries_upto(session=tip.session, n=tip.n, count=chunk))
        if not entries or entries[0].tip != tip:
            raise Invalid("entry", f"{tip.session}/{tip.n} doesn't exist", "Take one from a path.")
        for found in entries:
            # Entries on other branches lie between: a path goes from an entry to its parent.
            if found.tip == tip:
                newest_first.append(found)
                tip = found.parent
        if enough is not None and tip is not None and enough(newest_first[::-1]):
            break
        chunk = min(chunk * 2, _LARGEST_CHUNK)
    return newest_first[::-1]


def entry(tip: Tip | None) -> Transaction[Entry | None]:
    """The entry at a tip."""
    return (yield from first(Entry, q.entry(session=tip.session, n=tip.n))) if tip else None


def count_said(session: SessionId) -> Transaction[int]:
    """The number of messages of people and the agent in a session."""
    return (yield from one(int, q.count_said(session=session)))


def current_path(session: SessionId) -> Transaction[list[Entry]]:
    """The transcript of a session, oldest entry first."""
    tip = yield from _tip(session)
    return (yield from path(tip))


def recent_path(session: SessionId) -> Transaction[list[Entry]]:
    """The transcript of a session as far back as its newest summary needs."""
    tip = yield from _tip(session)
    return (yield from path(tip, covers_summary))


def question(session: SessionId) -> Transaction[Entry | None]:
    """The first thing that a person said in a session itself."""
    return (yield from first(Entry, q.first_question(session=session)))


def undo(session: SessionId, count: int, by: PersonId, at: Moment) -> Transaction[Tip | None]:
    """Take the last exchanges back: the tip moves to before them."""
    end = yield from _hold(session)
    # One exchange more than asked for tells where the oldest of them begins.
    entries = yield from path(end.tip, lambda newest: len(exchanges(newest)) > count)
    return (yield from _move(session, end, before_exchange(entries, count), TipMove.UNDO, by, at))


def retry(session: SessionId, by: PersonId, at: Moment) -> Transaction[list[Entry]]:
    """Take the last exchange back and return what the person had asked in it."""
    end = yield from _hold(session)
    entries = yield from path(end.tip, lambda newest: len(exchanges(newest)) > 1)
    to, asked = before_answer(entries)
    yield from _move(session, end, to, TipMove.RETRY, by, at)
    return asked


def rewind(session: SessionId, to: Tip, by: PersonId, at: Moment) -> Transaction[Tip | None]:
    """Go back to an entry of the path; what came after it stays, on a branch of its own."""
    end = yield from _hold(session)
    if not (yield from _leads_through(end.tip, to)):
        raise Refused(Refusal.NOT_FOUND)
    return (yield from _move(session, end, to, TipMove.REWIND, by, at))


def reaches(session: SessionId, entry: Tip) -> Transaction[bool]:
    """Whether an entry is a session's own, on whichever branch, or lies on the way to where the session ends."""
    if entry.session == session:
        return bool((yield q.entry(session=session, n=entry.n)))
    return (yield from _leads_through((yield from _tip(session)), entry))


def compress(session: SessionId, text: str, upto: Tip, by: PersonId, at: Moment) -> Transaction[Tip | None]:
    """Let a summary stand for all entries up to one; they stay, and an undo or a rewind can still reach them."""
    end = yield from _hold(session)
    if not (yield from _leads_through(end.tip, upto)):
        raise Refused(Refusal.NOT_FOUND)
    draft = Draft(GATEWAY, (Summary(text, upto.session, upto.n),))
    tip = yield from add(session, end.tip, end.length, [draft], at, 0)
    yield from record(session, end.tip, tip, TipMove.COMPRESS, by, at)
    yield set_tip(session, tip, end.length + 1, at)
    return tip


def back_to(session: SessionId, to: Tip | None, why: TipMove, by: PersonId, at: Moment) -> Transaction[Tip | None]:
    """Move a tip to where it was before."""
    return (yield from _move(session, (yield from _hold(session)), to, why, by, at))


def tip_changes(session: SessionId, count: int) -> Transaction[list[TipChange]]:
    """The moves of a session's tip other than by new entries, newest first."""
    return (yield from each(TipChange, q.tip_moves(session=session, count=count)))


def _leads_through(tip: Tip | None, entry: Tip) -> Transaction[bool]:
    """Whether an entry lies on the path to a tip."""
    entries = yield from path(tip, back_past(entry))
    return any(e.tip == entry for e in entries)


def _hold(session: SessionId) -> Transaction[End]:
    end = yield from first(End, q.end_of(session=session))
    if end is None:
        raise Refused(Refusal.NOT_FOUND)
    return end


def _tip(session: SessionId) -> Transaction[Tip | None]:
    found = yield from first(Session, q.session(session=session))
    if found is None:
        raise Refused(Refusal.NOT_FOUND)
    return found.tip


def _move(
    session: SessionId, end: End, to: Tip | None, why: TipMove, by: PersonId, at: Moment
) -> Transaction[Tip | None]:
    yield from record(session, end.tip, to, why, by, at)
    yield set_tip(session, to, end.length, at)
    return to


def record(session: SessionId, tip: Tip | None, to: Tip | None, why: TipMove, by: str, at: Moment) -> Transaction[None]:
    """Remember that a tip moved, and who has read as far as it was; the caller sets it."""
    yield q.read_by_all(session=session)
    yield moved(session, tip, to, why, by, at)


def moved(session: SessionId, tip: Tip | None, to: Tip | None, why: TipMove, by: str, at: Moment) -> Statement:
    """Remember that a tip moved."""
    before = {"from_session": tip.session if tip else None, "from_n": tip.n if tip else None}
    after = {"to_session": to.session if to else None, "to_n": to.n if to else None}
    return q.add_tip_move(session=session, why=why, by=by, at=at, **before, **after)


def set_tip(session: SessionId, tip: Tip | None, length: int, at: Moment) -> Statement:
    """Let a session, which has so many entries of its own, end at an entry."""
    there = {"tip_session": tip.session if tip else None, "tip": tip.n if tip else None}
    return q.set_tip(session=session, length=length, at=at, **there)
