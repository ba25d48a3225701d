"""Every error that Segue raises on purpose, in one tree.

    SegueError
    ├── Refused            you asked for something that isn't allowed now; nothing changed
    ├── Invalid            what you passed in can't be right; the message names the field
    │   └── NotInstalled       it needs a library that is an extra
    ├── IllegalStep        a handoff can't go from where it stands to there
    ├── StoreError         the database can't do it
    │   ├── StoreCorrupt       the file isn't a sound Segue database
    │   ├── StoreTooNew        a newer Segue wrote it
    │   ├── StoreLocked        somebody else holds it for too long
    │   ├── StoreConflict      a constraint of the schema says no
    │   ├── Outdated           what a change rests on was changed by somebody else
    │   ├── StoreReadOnly      it can't be written to
    │   ├── StoreFull          the disk has no room
    │   ├── Overloaded         more comes in than can be done now
    │   ├── StoreUnreachable   the server doesn't answer, or the file can't be opened
    │   │   └── StoreSilent        the server doesn't answer now; it may be starting
    │   ├── StoreClosed        this program closed it: nothing is asked of it again
    │   └── OutcomeUnknown     the connection broke during a commit: it may or may not have happened
    ├── SendError          a platform didn't take a message
    │   ├── SendLater          it will: try again after some seconds
    │   │   └── Unreachable        nobody answers at its address
    │   ├── SendNever          it won't: a dead letter
    │   │   ├── MessageGone        the message that it would change isn't there any more
    │   │   └── InDoubt            nobody knows whether it was sent, and nobody wants it twice
    │   └── SendUnsure         nobody knows whether it did
    ├── AgentFailed        an agent can't answer; it says why, and whether another try may help
    │   ├── ModelRefused       its provider refuses what was said: that is set aside
    │   └── OverBudget         it would spend more than the host allows
    ├── Unanswered         a person whom an agent asked didn't answer
    ├── TooLong            more was said than an agent's model takes: it is to be summed up
    ├── Disconnected       an account can't be reached now; it is tried again
    └── Fenced             somebody else holds this session or delivery now: drop the work, write nothing

A message says what happened and what to do next; it never carries a secret.
"""

from enum import Enum


class Refusal(Enum):
    """Why a move was refused; the value is the sentence a person reads."""

    NOT_FOUND = "No session of yours goes by that. /resume lists them."
    NO_AGENT = "There is no such agent for you here. /agent lists them."
    NOT_LISTED = "The list that you were shown here has no such line. Type the command alone to see it."
    NO_SUCH_MESSAGE = "That message isn't part of what was said here. Reply to one that is."
    ALREADY_THERE = "You are already in that session."
    NOTHING_BOUND = "No session is open here. Write something to start one, or /resume an old one."
    CLOSED = "That session is closed. Its owner opens it again with /resume."
    BUSY = "A turn is running or waiting in that session. Try again when it has been answered."
    UNREAD = "Others read this session who haven't read that message. Type /new where they do, then go back to it here."
    NEEDS_YES = "More people could read that session here. Its owner can allow it with /yes."
    TOO_MANY_LIVE = "Too many sessions are open here. Close one with /sessions close N first."
    TOO_DEEP = "This session is already as deep a child as is allowed. Ask its parent to start the work."
    TOO_MANY_CHILDREN = "This session has as many live children as is allowed. Close one with sessions_close first."
    LABEL_TAKEN = "A live child of this session has that label. Choose another, or send to that one."
    TO_ITSELF = "That is this session itself: it is in it already."
    ONE_TASK = "That session does one task and takes no messages. Start one with mode = session to go on with it."
    WAITS_FOR_YOU = "That session waits for this one's answer. Answer instead of writing to it."
    OWNER_STARTS = "Only the owner of this session can start others from it."
    OTHERS_READ = "Others read that session who haven't read this one. Let the person bring one to the other first."
    NOT_ITS_CHILD = "Only a session that this one started can be closed from here."
    OVER_BUDGET = (
        "As many turns came of one message as are allowed. Answer with what there is, and let the person go on."
    )
    OVER_LIMIT = "That is more than I take for one person in a minute, or keep waiting. Try again in a minute."
    SAME_LANE = "The conversation is already in that place."
    MOVED_SINCE = "This place has moved on to another session since. Use /resume to go back."
    NOTHING_TO_UNDO = "There is nothing to take back."
    NOTHING_TO_REDO = "There is no /undo to take back: nothing was undone, or something was said since."
    NOTHING_TO_RETRY = "Nothing was asked here that could be asked again."
    NOT_ALLOWED = "You may not do that here."
    WRONG_CODE = "That code doesn't work. A code works once and not for long: ask for a new one."
    TOO_MANY_TRIES = "Too many codes that didn't work. Try again in ten minutes."
    BEARER_UNKNOWN = "That token isn't known here. `segue tokens create` makes one."
    BEARER_ENDED = "That token has ended. `segue tokens create` makes a new one."
    BEARER_REVOKED = "That token was revoked. Ask the host of this Segue for a new one."
    BEARER_ELSEWHERE = "That token is for something else. `segue tokens create` makes one for this."
    BEARER_BLOCKED = "That token's person may talk nowhere here now. The host of this Segue decides that."
    TOO_MANY_TOKENS = "Too many tokens that didn't count came from there. Try again in ten minutes."
    NO_SCHEDULE = "No scheduled work of yours goes by that. /schedules lists it."
    NO_HANDOFF = "No handoff is on its way from here."
    HANDOFF_RUNNING = "This session is being handed off. Wait for it, or cancel it first."


_LONGEST = 1000
"""Characters of each part of an error about a value."""


class SegueError(Exception):
    """The root of every error that Segue raises on purpose."""


class Refused(SegueError):
    """A request that isn't allowed now; it changed nothing."""

    def __init__(self, why: Refusal) -> None:
        super().__init__(why.value)
        self.why = why


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


class Invalid(SegueError):
    """A value that can't be right: `field` names it, `fix` says what to do. Neither quotes all of a long value."""

    def __init__(self, field: str, problem: str, fix: str) -> None:
        field, problem, fix = _short(field), _short(problem), _short(fix)
        super().__init__(f"{field}: {problem}. {fix}")
        self.field = field
        self.problem = problem
        self.fix = fix


class NotInstalled(Invalid):
    """A part of Segue whose library is an extra that isn't installed; `extra` names it."""

    def __init__(self, field: str, library: str, extra: str) -> None:
        super().__init__(field, f"it needs {library}, which isn't installed", f"Run `segue install {extra}`.")
        self.extra = extra


class IllegalStep(SegueError):
    """A step that a handoff can't take from where it stands."""


class StoreError(SegueError):
    """The database can't do it now; nothing of the change was kept."""


class StoreCorrupt(StoreError):
    """The file isn't a sound Segue database."""


class StoreTooNew(StoreError):
    """A newer Segue wrote this database."""


class StoreLocked(StoreError):
    """Somebody else held the database for longer than we wait."""


class StoreConflict(StoreError):
    """A constraint of the schema says no."""


class Outdated(StoreError):
    """A thing in a locker was changed since it was read: read it again, and do the work anew."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} was changed by somebody else since it was read; nothing of the change was kept.")


class StoreReadOnly(StoreError):
    """The database can't be written to."""


class StoreFull(StoreError):
    """The disk has no room for the change."""


class Overloaded(StoreError):
    """More comes in than can be done now; nothing was taken, and it may be sent again in a while."""


class StoreUnreachable(StoreError):
    """The server doesn't answer, or the file can't be opened."""


class StoreSilent(StoreUnreachable):
    """The server doesn't answer now; it may be starting."""


class StoreClosed(StoreError):
    """This program closed the store: nothing is asked of it again."""


class OutcomeUnknown(StoreError):
    """The connection broke during a commit: the change may or may not have happened."""


class AgentFailed(SegueError):
    """An agent that can't answer: `problem` and `fix` are for the host, `passes` says whether another try may help."""

    def __init__(self, problem: str, fix: str, *, passes: bool) -> None:
        super().__init__(f"{problem} {fix}")
        self.problem = problem
        self.fix = fix
        self.passes = passes


class ModelRefused(AgentFailed):
    """A provider that refuses what was said, and would refuse it again: what was asked is set aside."""

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(problem, fix, passes=False)


class OverBudget(AgentFailed):
    """A turn would spend more than a budget of the host's has; `problem` is for anybody."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, "Allow more when you are asked, or change [budget] in segue.toml.", passes=False)


class Unanswered(SegueError):
    """A person was asked something and didn't answer in time, or it is asked no more; the message says which."""


class TooLong(SegueError):
    """More was said than the model takes. The gateway sums it up and asks again; an agent raises it before any word."""


class Disconnected(SegueError):
    """An account can't be reached now; the message, which carries no secret, says why and what to do."""


class SendError(SegueError):
    """A platform didn't take a message."""


class SendLater(SendError):
    """The platform refused the message for now; nothing was sent."""

    def __init__(self, why: str, seconds: float | None = None) -> None:
        super().__init__(why)
        self.seconds = seconds


class Unreachable(SendLater):
    """The platform can't be reached; nothing was sent."""


class SendNever(SendError):
    """The platform will never take this message; nothing was sent."""


class MessageGone(SendNever):
    """The message that was to be changed isn't there any more: somebody deleted it."""


class InDoubt(SendNever):
    """Nobody knows whether an earlier attempt sent it, and nothing is to be sent twice: its owner is asked."""


class SendUnsure(SendError):
    """The call broke off: the platform may have taken the message or not."""


class Fenced(SegueError):
    """Somebody else holds this now: drop the work, write nothing."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is held by another replica now; this one must drop its work.")
