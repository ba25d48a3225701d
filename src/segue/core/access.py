"""Who may do what: one table, and the one gate that reads it.

Law: an action without a row in MAY is a bug, and nobody may do what the table doesn't grant them.
"""

from __future__ import annotations

from enum import StrEnum

from segue.errors import Refusal, Refused


class Standing(StrEnum):
    """What a person is to a lane and the session that it speaks to."""

    HOST = "host"
    """The one person who runs this Segue."""
    OWNER = "owner"
    """The person whom the session belongs to."""
    PARTICIPANT = "participant"
    """Somebody who may speak here."""
    STRANGER = "stranger"
    """Somebody who may not."""


class Action(StrEnum):
    """What somebody may want to do: speak, or one of the commands."""

    SPEAK = "speak"
    NEW = "new"
    RESUME = "resume"
    SESSIONS = "sessions"
    TITLE = "title"
    BRANCH = "branch"
    HANDOFF = "handoff"
    UNDO = "undo"
    RETRY = "retry"
    REWIND = "rewind"
    COMPRESS = "compress"
    TREE = "tree"
    STOP = "stop"
    YES = "yes"
    NO = "no"
    STATUS = "status"
    USAGE = "usage"
    SEARCH = "search"
    EXPORT = "export"
    LINK = "link"
    WHO = "who"
    WHY = "why"
    HOME = "home"
    SCHEDULE = "schedule"
    SCHEDULES = "schedules"
    HELP = "help"


_HOST = frozenset({Standing.HOST})
_OWNERS = _HOST | {Standing.OWNER}
_PEOPLE = _OWNERS | {Standing.PARTICIPANT}
_ANYBODY = _PEOPLE | {Standing.STRANGER}

MAY: dict[Action, frozenset[Standing]] = {
    Action.SPEAK: _PEOPLE,
    Action.NEW: _PEOPLE,
    Action.RESUME: _PEOPLE,
    Action.SESSIONS: _PEOPLE,
    Action.TITLE: _OWNERS,
    Action.BRANCH: _PEOPLE,
    Action.HANDOFF: _OWNERS,
    Action.UNDO: _OWNERS,
    Action.RETRY: _OWNERS,
    Action.REWIND: _OWNERS,
    Action.COMPRESS: _OWNERS,
    Action.TREE: _OWNERS,
    Action.STOP: _PEOPLE,
    Action.YES: _PEOPLE,
    Action.NO: _PEOPLE,
    Action.STATUS: _PEOPLE,
    Action.USAGE: _OWNERS,
    Action.SEARCH: _PEOPLE,
    Action.EXPORT: _OWNERS,
    Action.LINK: _ANYBODY,
    Action.WHO: _PEOPLE,
    Action.WHY: _PEOPLE,
    Action.HOME: _HOST,
    Action.SCHEDULE: _OWNERS,
    Action.SCHEDULES: _OWNERS,
    Action.HELP: _PEOPLE,
}
"""Who may: what reaches only one's own sessions (resume, search) is for everybody who may speak."""


def authorize(standing: Standing, action: Action) -> None:
    """Raise `Refused` unless somebody of this standing may do this."""
    if standing not in MAY[action]:
        raise Refused(Refusal.NOT_ALLOWED)
