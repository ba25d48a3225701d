"""Titles: per owner, found without regard to case, numbered by lineage."""

from difflib import get_close_matches

from segue.changes.people import actors
from segue.changes.rows import each, first, one
from segue.changes.sessions import sessions
from segue.changes.sessions.rows import Locked
from segue.core.contracts.database import Transaction
from segue.core.contracts.wakes import Topic, Wake
from segue.core.lanes import Address
from segue.core.titles import LONGEST, Title, clean, folded, new_title, parse
from segue.core.values import Moment, PersonId, SessionId
from segue.database.statements import q
from segue.database.transactions import Moved
from segue.errors import Invalid, Refusal, Refused

_NEAR = 200
_MOST = 10_000
"""Titles that are looked through for one that differs in case alone."""


def entitle(session: SessionId, text: str, by: PersonId, at: Moment) -> Transaction[Title]:
    """Name one of a person's own sessions; a name that they have used takes the next number."""
    name = new_title(text)
    by = yield from _owner(session, by)
    current = yield from of(session)
    return current if current and current.name == name else (yield from take(session, by, name, at))


def suggest(session: SessionId, text: str, at: Moment) -> Transaction[None]:
    """Name a session in words of its agent's, unless it has a title or the words are none."""
    try:
        name = new_title(clean(text)[:LONGEST].strip())
    except Invalid:
        return
    owner = yield from actors.hold((yield from sessions.known(session)).owner)
    yield q.lock_session(session=session)
    if (yield from of(session)) is None:
        yield from take(session, owner, name, at)


def untitle(session: SessionId, by: PersonId, at: Moment) -> Transaction[None]:
    """Take the title from one of a person's own sessions."""
    yield from _owner(session, by)
    yield q.end_title(session=session, at=at)


def _owner(session: SessionId, by: PersonId) -> Transaction[PersonId]:
    """The owner, who asks; both are held."""
    by = yield from actors.hold(by)
    locked = yield from first(Locked, q.lock_session(session=session))
    if locked is None or locked.owner != by:
        raise Refused(Refusal.NOT_FOUND)
    return by


def take(session: SessionId, owner: PersonId, name: str, at: Moment, number: int | None = None) -> Transaction[Title]:
    """Give a session a name under an owner, with that number if it is free, else the next of the lineage."""
    yield Wake(Topic.NAMED, session)
    if number is not None:
        yield q.end_title(session=session, at=at)
        if (yield q.add_title(session=session, owner=owner, name=name, number=number, at=at)):
            return Title(name, number)
    last = yield from one(int, q.last_number(owner=owner, name=name))
    yield q.end_title(session=session, at=at)
    if not (yield q.add_title(session=session, owner=owner, name=name, number=last + 1, at=at)):
        raise Moved
    return Title(name, last + 1)


def of(session: SessionId) -> Transaction[Title | None]:
    """The title of a session."""
    return (yield from first(Title, q.title(session=session)))


def threads(session: SessionId) -> Transaction[tuple[str, list[Address]]]:
    """The title of a session, empty if it has none, and the threads that speak to it."""
    title = yield from of(session)
    lanes = yield from sessions.lanes(session)
    return str(title or ""), list(dict.fromkeys(lane.address for lane in lanes if lane.address.thread))


def of_at(session: SessionId, place: Address) -> Transaction[Title | None]:
    """The title of a session in a place."""
    return (yield from first(Title, q.title_at(session=session, address=place.key)))


def find(owner: PersonId, text: str) -> Transaction[SessionId | None]:
    """The owner's session that goes by this title: the newest of its lineage, or the one with that number.

    One that is written exactly so comes before one that differs in case.
    """
    name, number = parse(text)
    owner = yield from actors.now(owner)
    found = yield from first(SessionId, q.titled(owner=owner, name=name, number=number))
    if found is not None:
        return found
    known = yield from each(Title, q.titles_of(owner=owner, count=_MOST))
    alike = next((title.name for title in known if folded(title.name) == folded(name)), None)
    return (yield from first(SessionId, q.titled(owner=owner, name=alike, number=number))) if alike else None


def having(owner: PersonId, words: str) -> Transaction[list[str]]:
    """The owner's own titles that have all these words."""
    known = yield from each(Title, q.titles_of(owner=(yield from actors.now(owner)), count=_NEAR))
    wanted = clean(words[: 2 * LONGEST]).casefold().split()
    return [str(title) for title in known if all(word in str(title).casefold() for word in wanted)]


def nearest(owner: PersonId, text: str) -> Transaction[str | None]:
    """The owner's own title that looks most like this one."""
    known = yield from each(Title, q.titles_of(owner=(yield from actors.now(owner)), count=_NEAR))
    titles = {said.casefold(): said for title in known for said in (str(title), title.name)}
    close = get_close_matches(clean(text[: 2 * LONGEST])[:LONGEST].casefold(), titles, n=1, cutoff=0.5)
    return titles[close[0]] if close else None
