"""Lists of a person's own sessions, each with some of its words."""

from segue.changes.sessions import search, sessions, transcripts
from segue.core.contracts.database import Transaction
from segue.core.titles import label
from segue.core.transcripts import Session
from segue.core.values import PersonId, SessionId, Value


class ListedSession(Value, frozen=True):
    """A session and some of its words."""

    session: Session
    text: str


def recent(owner: PersonId, count: int, after: SessionId | None = None) -> Transaction[list[ListedSession]]:
    """A person's sessions, the last used first, each with what was asked in it first."""
    listed = []
    before = (yield from sessions.own(after, owner)) if after else None
    for session in (yield from sessions.talks(owner, count, before, 0.0)):
        asked = yield from transcripts.question(session.id)
        listed.append(ListedSession(session, label(asked.text) if asked else ""))
    return listed


def having(owner: PersonId, words: str, count: int) -> Transaction[list[ListedSession]]:
    """A person's sessions in which these words were said, each with the newest entry that has them."""
    found: dict[SessionId, ListedSession] = {}
    for entry in (yield from search.search(owner, words, count)):
        id = entry.tip.session
        if id not in found:
            found[id] = ListedSession((yield from sessions.known(id)), entry.text)
    return list(found.values())
