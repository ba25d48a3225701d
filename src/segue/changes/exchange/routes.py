"""Routes: where that goes which a session says unasked, as things stand now."""

from segue.changes.places import addresses, lanes
from segue.changes.rows import each, first
from segue.core.contracts.database import Transaction
from segue.core.lanes import Lane
from segue.core.values import SessionId
from segue.database.statements import q


def now(session: SessionId, asked_in: tuple[SessionId, int], home: str) -> Transaction[tuple[str | None, str]]:
    """A lane of the session, if it has one to answer in, and the key of the address.

    The lane in which somebody asked, if it still speaks to the session or to one that started it; else the newest lane
    of the nearest of them that has any; else the home, which is `home` unless another was named in chat; else nowhere.
    """
    line = yield from each(SessionId, q.forebears(session=session))
    asking = yield from first(Lane, q.asking_lane(session=asked_in[0], turn=asked_in[1]))
    if asking is not None:
        asking = yield from lanes.now(asking)
        bound = yield from lanes.speaks_to(asking)
        if bound in line:
            return asking.key if bound == session else None, asking.address.key
    for forebear in line:
        newest = yield from first(Lane, q.lanes_bound(session=forebear))
        if newest is not None:
            return newest.key if forebear == session else None, newest.address.key
    if asking is not None:
        named = yield from addresses.home(asking.address.platform, asking.address.account)
        if named is not None:
            return None, named.place.address.key
    return None, home
