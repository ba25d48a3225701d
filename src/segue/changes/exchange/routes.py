"""Routes: the address for what a session says unasked, as things stand now.

Law: it never goes to a place with other readers than those who asked. What has nowhere to go waits in its session.
"""

from segue.changes.places import lanes
from segue.changes.places.addresses import is_own
from segue.changes.rows import each, first
from segue.changes.sessions import readings
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Lane, Place
from segue.core.transcripts import Session
from segue.core.values import SessionId
from segue.database.statements import q


def now(session: SessionId, asked_in: tuple[SessionId, int]) -> Transaction[tuple[str | None, str]]:
    """The key of the lane to answer in, if it is one of the session's or has been, and the key of the address.

    The lane in which somebody asked; else the newest lane of the session, or of the nearest that started it; else
    nowhere.
    """
    asking = yield from first(Lane, q.asking_lane(session=asked_in[0], turn=asked_in[1]))
    if asking is not None:
        asking = yield from lanes.now(asking)
        line = yield from each(SessionId, q.forebears(session=session))
        bound = yield from lanes.speaks_to(asking)
        if bound in line or (yield from hears(asking.address, session)):
            return None if bound in line and bound != session else asking.key, asking.address.key
    return (yield from newest(session))


def newest(session: SessionId) -> Transaction[tuple[str | None, str]]:
    """The newest lane of a session, or of the nearest that started it, and its address; nowhere if there is none."""
    found = yield from first(Session, q.session(session=session))
    others = (yield from readings.others(session, found.owner)) if found else []
    for forebear in (yield from each(SessionId, q.forebears(session=session))):
        for lane in (yield from each(Lane, q.lanes_bound(session=forebear))):
            if forebear == session or lane.address not in others or (yield from hears(lane.address, session)):
                return lane.key if forebear == session else None, lane.address.key
    return None, ""


def hears(address: Address, session: SessionId) -> Transaction[bool]:
    """Whether a place may hear what a session says now: it is its owner's private chat, or has read all of it."""
    place = yield from first(Place, q.address(address=address.key))
    found = yield from first(Session, q.session(session=session))
    own = place is not None and found is not None and (yield from is_own(place, found.owner))
    return own or (yield from readings.whole(address, session))
