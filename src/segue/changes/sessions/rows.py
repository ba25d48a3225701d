"""Rows of the database as the values of the core."""

from __future__ import annotations

from functools import lru_cache

from segue.core.bindings import Binding, Standing, TipChange
from segue.core.contracts.database import Row
from segue.core.lanes import Kind, Lane, Person
from segue.core.messages import decode_parts
from segue.core.moves import Why
from segue.core.titles import Title
from segue.core.transcripts import Author, Entry, Role, Session, Source, Tip, TipMove
from segue.core.values import SessionId


def tip_of(session: str | None, n: int | None) -> Tip | None:
    """A tip from its two columns."""
    return None if session is None or n is None else Tip(SessionId(session), n)


def person_of(row: Row) -> Person:
    """A person from its row."""
    return Person(row[0], row[1], row[2])


def session_of(row: Row) -> Session:
    """A session from a row of the `session` query."""
    id, owner, began, used, tip_session, tip, name, number, parent, label, closed, _ = row
    title = str(Title(name, number)) if name is not None else ""
    return Session(id, owner, began, used, tip_of(tip_session, tip), title, parent, label, closed)


def entry_of(row: Row) -> Entry:
    """An entry from its row."""
    session, n, parent_session, parent, role, person, name, parts, at, turn, identity, address = row
    author, source = _author(role, person, name), _source(identity, address)
    return Entry(Tip(session, n), tip_of(parent_session, parent), author, decode_parts(parts), at, turn, source)


@lru_cache(maxsize=1024)
def _author(role: str, person: str, name: str) -> Author:
    return Author(Role(role), person, name)


@lru_cache(maxsize=1024)
def _source(identity: str, address: str) -> Source:
    return Source(identity, address)


def standing_of(row: Row) -> Standing:
    """How a lane stands, from its row."""
    lane, kind, name, session, since, why = row
    return Standing(Lane.parse(lane), Kind(kind), name, session, since, Why(why) if why is not None else None)


def tip_change_of(row: Row) -> TipChange:
    """A change of a tip from its row."""
    from_session, from_n, to_session, to_n, why, by, at = row
    return TipChange(tip_of(from_session, from_n), tip_of(to_session, to_n), TipMove(why), by, at)


def binding_of(row: Row) -> Binding:
    """A binding from its row."""
    lane, session, since, until, why, ended_why, by = row
    ended = Why(ended_why) if ended_why is not None else None
    return Binding(Lane.parse(lane), session, since, until, Why(why), ended, by)
