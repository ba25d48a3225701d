"""People: what somebody may do, and the codes that prove who they are."""

from __future__ import annotations

import hashlib
import hmac
from enum import StrEnum

from segue.core.commands import Command, Unknown
from segue.core.messages import Arrival
from segue.core.text.normal import normal
from segue.core.values import PersonId, Value
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


class Facts(Value, frozen=True):
    """What decides a person's standing in a lane."""

    person: PersonId
    host: bool = False
    known: bool = False
    """The host let them in: by name, by a grant, or by letting everybody in."""
    owner: PersonId | None = None
    """Whom the session belongs to that the lane speaks to; None if it speaks to none."""


def standing_of(facts: Facts) -> Standing:
    """What a person is to a lane and its session; where there is none, they would own the one that they begin."""
    if facts.host:
        return Standing.HOST
    if not facts.known:
        return Standing.STRANGER
    return Standing.OWNER if facts.owner in (None, facts.person) else Standing.PARTICIPANT


class Action(StrEnum):
    """What somebody may want to do: each kind of event, and each command by its name."""

    SPEAK = "speak"
    EDIT = "edit"
    """Change what they said before."""
    PAIR = "pair"
    """Let a stranger in, by the code that the stranger was given."""
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
    Action.EDIT: _PEOPLE,
    Action.PAIR: _HOST,
    Action.NEW: _PEOPLE,
    Action.RESUME: _PEOPLE,
    Action.SESSIONS: _PEOPLE,
    Action.TITLE: _OWNERS,
    Action.BRANCH: _OWNERS,
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
"""Who may: what reaches only one's own sessions (resume, search) is for everybody who may speak. A branch is a session
of one's own with all that was said before, so it is the owner's to make."""


def action_of(arrival: Arrival, command: Command | Unknown | None) -> Action:
    """What an arrival asks for; a command that isn't ours is the agent's, so it is spoken."""
    if isinstance(command, Command):
        return Action(command.name)
    return Action.EDIT if arrival.edits else Action.SPEAK


def authorize(standing: Standing, action: Action) -> None:
    """Raise `Refused` unless somebody of this standing may do this."""
    if standing not in MAY[action]:
        raise Refused(Refusal.NOT_ALLOWED)


ALPHABET = "234679CDFGHJKMNPQRTVWXY"
"""Neither 0 and O, 1, I and L, 2 and Z, 5 and S, 8 and B, U and V, nor vowels that could make a word."""


LENGTH = 8


_LOOKED_AT = 8 * LENGTH


RANDOMNESS = 16
"""Bytes that a code is made of: so many more than it holds that every code is as likely as any other."""


def make_code(randomness: bytes) -> str:
    """A code as it is shown: `CDFG-HJ34`."""
    if len(randomness) != RANDOMNESS:
        raise ValueError(f"a code needs {RANDOMNESS} random bytes")
    number, letters = int.from_bytes(randomness), ""
    for _ in range(LENGTH):
        number, letter = divmod(number, len(ALPHABET))
        letters += ALPHABET[letter]
    return f"{letters[:4]}-{letters[4:]}"


def read_code(typed: str) -> str:
    """A code as it counts: however it was grouped, and in whichever case."""
    return "".join(c for c in normal(typed, _LOOKED_AT).upper() if c.isalnum())


def digest(secret: bytes, typed: str) -> str:
    """What the store keeps of a code: nobody can tell the code from it, or look for one, without the secret."""
    return hmac.new(secret, read_code(typed).encode("utf-8", "replace"), hashlib.sha256).hexdigest()
