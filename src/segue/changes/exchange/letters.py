"""Dead letters: arrivals that couldn't be taken in, as they came and why; and the keys that tell a redelivery."""

import msgspec

from segue.changes import run_days, settings
from segue.changes.rows import each, first, one
from segue.core.contracts.database import Transaction
from segue.core.contracts.wakes import Topic, Wake
from segue.core.messages import Arrival
from segue.core.values import Moment, Value
from segue.database.statements import q
from segue.errors import Invalid

DAYS = 8
"""Days in which a gateway ran for which a redelivery is known: one more than the most patient platform tries."""
AT_ONCE = 2000
MOST = 1000
"""Dead letters of strangers that are kept of an account."""
_KEPT = 30 * run_days.DAY
_FORGOTTEN = "letters forgotten/"


_arrival = msgspec.json.Decoder(Arrival)


class DeadLetter(Value, frozen=True):
    """An arrival that couldn't be understood, as it came, and why."""

    id: int
    account: str
    raw: str
    why: str
    at: Moment


def forget(at: Moment) -> Transaction[bool]:
    """Forget some keys that no platform redelivers any more; returns whether there may be more of them.

    Days in which no gateway ran don't count, and a clock that jumps brings one day more at most.
    """
    days = yield from run_days.count(at)
    if len(days) <= DAYS:
        return False
    before = days[-DAYS] * run_days.DAY
    return bool((yield q.forget_seen(before=before, count=AT_ONCE)))


def forget_strangers(account: str, at: Moment) -> Transaction[int]:
    """Forget dead letters of strangers that are a month old, and all but the newest; returns how many that were."""
    gone = len((yield q.forget_letters(account=account, before=at - _KEPT, most=MOST)))
    if gone:
        before = int((yield from settings.once(f"{_FORGOTTEN}{account}", "0")))
        yield q.set_setting(name=f"{_FORGOTTEN}{account}", value=str(before + gone))
    return gone


def bury(account: str, raw: str, why: str, at: Moment, known: int = 0) -> Transaction[None]:
    """Keep an arrival that couldn't be understood, as it came; `known` is 1 if the host knows its person."""
    yield q.add_letter(account=account, raw=raw, why=why, at=at, known=known)


def newest(count: int) -> Transaction[list[DeadLetter]]:
    """The arrivals that couldn't be understood, the newest first."""
    return (yield from each(DeadLetter, q.letters(count=count)))


def one_letter(id: int) -> Transaction[DeadLetter]:
    """One arrival that couldn't be understood."""
    found = yield from first(DeadLetter, q.letter(id=id))
    if found is None:
        raise Invalid("letter", f"in-{id} is no dead letter", "`segue letters list` lists them.")
    return found


def want(id: int, at: Moment) -> Transaction[None]:
    """Have a dead letter taken in again by the gateway; only what was read before can be."""
    if arrival_in((yield from one_letter(id))) is None:
        fix = f"See it by `segue letters show in-{id}` and drop it."
        raise Invalid("letter", f"in-{id} couldn't be read, so it can't be taken in again", fix)
    yield q.want_letter(id=id, at=at)
    yield Wake(Topic.LETTERS)


def drop(id: int, at: Moment) -> Transaction[None]:
    """Nobody wants a dead letter any more."""
    if not (yield q.end_letter(id=id, at=at)):
        raise Invalid("letter", f"in-{id} is no dead letter", "`segue letters list` lists them.")


def wanted(count: int) -> Transaction[list[DeadLetter]]:
    """The dead letters that are to be taken in again."""
    return (yield from each(DeadLetter, q.letters_wanted(count=count)))


def count() -> Transaction[int]:
    """How many messages couldn't be taken in or sent."""
    return (yield from one(int, q.count_all_dead()))


def begin_again(letter: DeadLetter, arrival: Arrival, at: Moment) -> Transaction[bool]:
    """Count an arrival as new again; returns whether its letter still waited for that."""
    if not (yield q.end_letter(id=letter.id, at=at)):
        return False
    for key in arrival.keys:
        yield q.unsee(account=letter.account, key=key)
    return True


def keep(letter: DeadLetter, why: str) -> Transaction[None]:
    """A dead letter couldn't be taken in again either."""
    yield q.keep_letter(id=letter.id, why=why)


def arrival_in(letter: DeadLetter) -> Arrival | None:
    """The arrival in a dead letter; None if it is in the platform's own words, which nobody could read."""
    try:
        return _arrival.decode(letter.raw)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
