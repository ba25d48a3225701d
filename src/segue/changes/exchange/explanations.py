"""The path of a message in words: what it became, which rules chose its lane and session, where each reply went."""

import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import Enum

from segue.changes.exchange.traces import Seen, Trace, TracedDelivery, TracedTurn
from segue.core.destinations import spot
from segue.core.lanes import Address, Lane
from segue.core.moves import Why
from segue.core.values import Moment

BECAUSE: dict[Why, str] = {
    Why.FIRST: "it was the first message there",
    Why.NEW: "somebody asked for a new session",
    Why.IDLE: "the session before had been idle for too long",
    Why.DAILY: "a new day had begun",
    Why.RESUME: "somebody went back to it",
    Why.QUOTE: "somebody replied to a message of it",
    Why.FORK: "it was branched there",
    Why.HANDOFF: "it was handed off there",
    Why.SPAWN: "the thread was opened for it",
    Why.RELEASE: "the place was let go",
    Why.CLOSE: "the session before was closed",
    Why.MERGED: "two places turned out to be one",
    Why.AUDIENCE: "other people came to read this place",
    Why.UNDO: "a move was taken back",
}
"""Why a lane speaks to a session, as a person reads it."""


class Errors(Enum):
    """Whether errors are told in their own words, which may hold a key or what somebody said."""

    TOLD = "told"
    """To the host, in private."""
    NAMED = "named"
    """To everybody else: that there was one."""

    def shown(self, error: str | None) -> str:
        """Words after a step that went wrong."""
        if not error:
            return ""
        return f": {printable(error)}" if self is Errors.TOLD else ": the host's log says why"


def explain(trace: Trace, errors: Errors) -> Iterator[str]:
    """The path of a message, one step a line."""
    for turn in trace.turns:
        yield from _turn(turn, errors)
    for seen in trace.seen:
        yield _seen(seen)
    for notice in trace.notices:
        yield _delivery(notice, errors)


def lane_rule(lane: str | None) -> str:
    """Who shares the conversation in which a message came."""
    if lane is None:
        return "it came from no place"
    where = Lane.parse(lane)
    if where.person:
        return "each person there has a session of their own"
    return "everyone in this thread shares one session" if where.address.thread else "this chat is one conversation"


def moment(at: Moment) -> str:
    """A time as the clock on the wall shows it."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


_HARMLESS = "\n\t\u200c\u200d"
"""Among the controls: new lines, tabs, and the joiners that Persian words and emoji are made with."""


def printable(text: str) -> str:
    """A text without what could steer a terminal: anybody may have written it."""
    return "".join(c for c in text if c in _HARMLESS or unicodedata.category(c) not in ("Cc", "Cf", "Cs"))


def _turn(turn: TracedTurn, errors: Errors) -> Iterator[str]:
    by = f" from {turn.name}" if turn.name else ""
    where = f" in {printable(spot(Lane.parse(turn.lane).address))}" if turn.lane else ""
    yield f"{moment(turn.accepted)}  received{by}{where}: {lane_rule(turn.lane)}"
    rule = f", bound since {moment(turn.since)}: {turn.why}" if turn.since is not None else ""
    because = f" ({BECAUSE[turn.why]})" if turn.why is not None else ""
    yield f"{moment(turn.accepted)}  queued as turn {turn.turn} of session {turn.session}{rule}{because}"
    if turn.finished is None:
        yield f"{'now':19}  {turn.state}"
    else:
        together = f" together with turn {turn.within}" if turn.within != turn.turn else ""
        yield f"{moment(turn.finished)}  {turn.state}{together}{errors.shown(turn.error)}"
    yield from (_delivery(delivery, errors) for delivery in turn.deliveries)


def _seen(seen: Seen) -> str:
    return f"{moment(seen.at)}  received on {seen.account}; it became no turn: a command, an edit, or refused"


def _delivery(delivery: TracedDelivery, errors: Errors) -> str:
    when = moment(delivery.at) if delivery.at is not None else f"{'now':19}"
    tries = "1 attempt" if delivery.attempts == 1 else f"{delivery.attempts} attempts"
    id = f" as {printable(delivery.message)}" if delivery.message else ""
    where = printable(spot(Address.parse(delivery.address)))
    return f"{when}  {delivery.state} to {where}{id}, {tries}{errors.shown(delivery.error)}"
