"""Exports: a session read whole, with the entries that it inherited."""

from __future__ import annotations

from segue.core.contracts import Transaction
from segue.core.exports import Transcript, transcript_of
from segue.core.transcripts import Entry, Tip
from segue.core.values import PersonId, SessionId
from segue.store import sessions, transcripts
from segue.store.rows import session_of
from segue.store.statements import q

_CHUNK = 500


def transcript(session: SessionId, owner: PersonId) -> Transaction[Transcript]:
    """All that one of a person's own sessions holds: every branch, and what it goes on from in other sessions."""
    yield from sessions.own(session, owner)
    return (yield from whole(session))


def whole(session: SessionId) -> Transaction[Transcript]:
    """The same, for whoever was found to be its owner before."""
    [row] = yield q.session(session=session)
    found = session_of(row)
    own: list[Entry] = []
    while more := (yield from sessions.entries_since(session, own[-1].tip.n if own else 0, _CHUNK)):
        own += more
    inherited: dict[Tip, Entry] = {}
    for tip in dict.fromkeys([*(entry.parent for entry in own), found.tip]):
        if tip is not None and tip.session != session and tip not in inherited:
            path = yield from transcripts.path(tip)
            inherited |= {entry.tip: entry for entry in path}
    return transcript_of(found, [*inherited.values(), *own])
