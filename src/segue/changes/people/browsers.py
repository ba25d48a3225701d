"""Browsers that signed in to the page: whose cookies count, and how they end.

Law: a cookie counts while it is signed by the page's key, before its end, and as long as its browser wasn't signed out.
A new key ends them all.
"""

from segue.changes import audit, settings
from segue.changes.audit import Event, Fact
from segue.changes.rows import each, one
from segue.core.contracts.database import Transaction
from segue.core.lanes import Identity
from segue.core.values import Moment, Value
from segue.core.windows import HOSTS
from segue.database.statements import q

KEY = "page key"
LIFETIME = 30 * 86400.0
"""Seconds for which a browser stays signed in."""


class Keys(Value, frozen=True):
    """The key that signs cookies, and the browsers whose cookies count no more."""

    key: bytes
    signed_out: frozenset[str]


def begin(fresh: str) -> Transaction[str]:
    """Make the page's key, unless there is one."""
    return (yield from settings.once(KEY, fresh))


def keys() -> Transaction[Keys]:
    """The page's key, and who signed out."""
    key = yield from one(str, q.setting(name=KEY))
    return Keys(bytes.fromhex(key), frozenset((yield from each(str, q.signed_out()))))


def sign_in(browser: str, where: str, at: Moment) -> Transaction[None]:
    """A browser opened the page by a link."""
    yield from audit.note(_fact(Event.SIGNED_IN, f"browser {browser} at {where}"), at)


def sign_out(browser: str, at: Moment) -> Transaction[None]:
    """A browser's cookie counts no more."""
    if (yield q.sign_out(browser=browser, at=at)):
        yield from audit.note(_fact(Event.SIGNED_OUT, f"browser {browser}"), at)


def rotate(name: str, fresh: str, at: Moment) -> Transaction[None]:
    """Replace a key by a new one: all that was made with it counts no more."""
    yield q.set_setting(name=name, value=fresh)
    yield from audit.note(_fact(Event.ROTATED, name), at)
    if name == KEY:
        yield from audit.note(_fact(Event.SIGNED_OUT, "all browsers"), at)


def forget(at: Moment) -> Transaction[None]:
    """Forget who signed out once their cookies have ended anyway."""
    yield q.forget_signed_out(before=at - LIFETIME)


def _fact(event: Event, detail: str) -> Fact:
    host: Identity = HOSTS[1]
    return Fact(event, identity=host.key, detail=detail)
