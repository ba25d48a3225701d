"""The audit: facts about who came in, as whom, and what was taken from whom; never words that somebody said.

Law: a fact is written in the transaction that makes it true. Nobody can fill the table: what anybody can cause is
counted in one row an hour, and forgotten after a month.
"""

from enum import StrEnum

from segue.changes.rows import each
from segue.core.contracts.database import Transaction
from segue.core.contracts.wakes import Hearers, Topic, Wake
from segue.core.values import Moment, Value
from segue.database.statements import q

_HOUR = 3600.0
_KEPT = 30 * 86400.0
_MOST = 10_000


class Event(StrEnum):
    """The kind of a fact."""

    LET_IN = "let in"
    """A person may talk from now on."""
    LINKED = "linked"
    """Two persons are one."""
    UNLINKED = "unlinked"
    """They are two again."""
    HOST = "became host"
    """An identity speaks for the host from now on."""
    SIGNED_IN = "signed in"
    """A browser opened the page by a link."""
    SIGNED_OUT = "signed out"
    """A browser, or all of them, must sign in again."""
    BEARER = "token made"
    """A program may act for a person by a token from now on."""
    REFUSED = "refused"
    """Somebody may not talk, or may not do what they asked for."""
    LIMITED = "limited"
    """Somebody went over a limit."""
    REVOKED = "revoked"
    """A person may talk no more, or a token of theirs counts no more."""
    BLOCKED = "blocked"
    """A person may talk nowhere, whatever else lets them in."""
    UNBLOCKED = "unblocked"
    """They may talk again where something lets them in."""
    READ = "read"
    """The host read what a stranger said."""
    FORGOT = "forgot"
    """Words were removed because somebody asked for it."""
    ROTATED = "rotated"
    """A secret was replaced by a new one."""


REPEATED = frozenset({Event.REFUSED, Event.LIMITED})
"""Facts that anybody can cause as often as they like: equal ones of an hour are one row with a count."""


class Fact(Value, frozen=True):
    """One thing that happened."""

    event: Event
    person: str = ""
    """Id of the person whom it is about."""
    by: str = ""
    """Id of the person who did it; empty if the gateway did by itself."""
    account: str = ""
    """Key of the account where it happened."""
    identity: str = ""
    """Key of the identity that the platform named."""
    detail: str = ""
    """Why, or what exactly, in a few words of ours."""


class Noted(Value, frozen=True):
    """A fact as it is kept: since when, until when, and how often within that time."""

    id: int
    at: Moment
    last: Moment
    count: int
    fact: Fact
    name: str = ""
    """Display name of the person whom it is about."""
    by_name: str = ""


def note(fact: Fact, at: Moment, times: int = 1) -> Transaction[None]:
    """Write down a fact that happened so many times, and count it."""
    row = {
        "event": fact.event,
        "person": fact.person,
        "by": fact.by,
        "account": fact.account,
        "identity": fact.identity,
        "detail": fact.detail,
        "at": at,
        "times": times,
    }
    if fact.event not in REPEATED or not (yield q.count_fact(**row, since=at - _HOUR)):
        yield q.add_fact(**row)
    yield Wake(Topic.NOTED, fact.event, Hearers.HERE)


def newest(count: int, person: str = "") -> Transaction[list[Noted]]:
    """Facts, the newest first; of one person, or of everybody."""
    return (yield from each(Noted, q.facts(count=count, person=person)))


def forget(at: Moment) -> Transaction[None]:
    """Forget refusals of a month ago, and all but the newest ones."""
    yield q.forget_facts(before=at - _KEPT, most=_MOST)
