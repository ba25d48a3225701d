"""Every error that Segue raises on purpose, in one tree.

    SegueError
    ├── Refused            the request isn't allowed now; nothing changed
    ├── Invalid            the value is wrong; the message names the field
    │   └── NotInstalled       the feature needs a library from an extra
    ├── IllegalStep        the handoff's state doesn't allow this step
    ├── StoreError         the database can't do the work
    │   ├── StoreCorrupt       the file isn't a valid Segue database
    │   ├── StoreTooNew        a newer Segue wrote the database
    │   ├── StoreLocked        another process locked the database for too long
    │   ├── StoreConflict      the change violates a constraint of the schema
    │   ├── Outdated           the stored value changed after it was read
    │   ├── StoreReadOnly      the database is read-only
    │   ├── StoreFull          the disk is full
    │   ├── Overloaded         more work arrives than Segue can process
    │   ├── StoreUnreachable   the server doesn't answer, or the file can't be opened
    │   │   └── StoreSilent        the server doesn't answer yet; it may be starting
    │   ├── StoreClosed        this program closed the database
    │   └── OutcomeUnknown     the connection broke during a commit: the change may or may not be stored
    ├── SendError          a platform didn't accept a message
    │   ├── SendLater          a temporary failure: retry after some seconds
    │   │   └── Unreachable        nothing answers at the platform's address
    │   ├── SendNever          a permanent failure: add a dead letter
    │   │   ├── MessageGone        the message to change doesn't exist any more
    │   │   └── InDoubt            the message may have been sent, and a duplicate isn't acceptable
    │   └── SendUnsure         the message may or may not have been sent
    ├── AgentFailed        the agent can't answer; it says why, and whether a retry may help
    │   ├── ModelRefused       the provider rejects the content, which is then set aside
    │   └── OverBudget         the turn would cost more than the host allows
    ├── Unanswered         a person didn't answer an agent's question
    ├── TooLong            the transcript exceeds the model's window and needs a summary
    ├── Disconnected       the account's connection is down; Segue reconnects
    └── Fenced             another replica owns this session or delivery: drop the work, write nothing

A message says what happened and what to do next. It never carries a secret.
"""

from enum import Enum


class Refusal(Enum):
    """The reason for refusing a move; the value is the sentence that a person reads."""

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
"""The longest field, problem or fix in an error about a value, in characters."""


class SegueError(Exception):
    """The root of every error that Segue raises on purpose."""


class Refused(SegueError):
    """A request that isn't allowed now. Nothing changed."""

    def __init__(self, why: Refusal) -> None:
        super().__init__(why.value)
        self.why = why


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


class Invalid(SegueError):
    """A wrong value: `field` names it, `fix` says what to do.

    Each part is shortened, so a long value isn't quoted in full.
    """

    def __init__(self, field: str, problem: str, fix: str) -> None:
        field, problem, fix = _short(field), _short(problem), _short(fix)
        super().__init__(f"{field}: {problem}. {fix}")
        self.field = field
        self.problem = problem
        self.fix = fix


class NotInstalled(Invalid):
    """A feature whose library isn't installed; `extra` names the extra that contains it."""

    def __init__(self, field: str, library: str, extra: str) -> None:
        super().__init__(field, f"it needs {library}, which isn't installed", f"Run `segue install {extra}`.")
        self.extra = extra


class IllegalStep(SegueError):
    """A step that a handoff's current state doesn't allow."""


class StoreError(SegueError):
    """The database can't do the work. Nothing was stored, except perhaps after `OutcomeUnknown`."""


class StoreCorrupt(StoreError):
    """The file isn't a valid Segue database."""


class StoreTooNew(StoreError):
    """A newer Segue wrote the database."""


class StoreLocked(StoreError):
    """Another process locked the database for longer than Segue waits."""


class StoreConflict(StoreError):
    """The change violates a constraint of the schema."""


class Outdated(StoreError):
    """A stored value changed after it was read.

    The caller reads it again and repeats its work.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} was changed by somebody else since it was read; nothing of the change was kept.")


class StoreReadOnly(StoreError):
    """The database is read-only."""


class StoreFull(StoreError):
    """The disk has no room for the change."""


class Overloaded(StoreError):
    """More work arrives than Segue can process. Nothing was stored; the sender may retry later."""


class StoreUnreachable(StoreError):
    """The server doesn't answer, or the file can't be opened."""


class StoreSilent(StoreUnreachable):
    """The server doesn't answer yet; it may be starting."""


class StoreClosed(StoreError):
    """This program closed the store. Later calls fail."""


class OutcomeUnknown(StoreError):
    """The connection broke during a commit: the change may or may not be stored."""


class AgentFailed(SegueError):
    """An agent that can't answer.

    `problem` and `fix` are for the host. `passes` says whether a retry may help.
    """

    def __init__(self, problem: str, fix: str, *, passes: bool) -> None:
        super().__init__(f"{problem} {fix}")
        self.problem = problem
        self.fix = fix
        self.passes = passes


class ModelRefused(AgentFailed):
    """A provider rejects the content and would reject it again. The gateway sets it aside."""

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(problem, fix, passes=False)


class OverBudget(AgentFailed):
    """A turn would cost more than one of the host's budgets allows. Anybody may read `problem`."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, "Allow more when you are asked, or change [budget] in segue.toml.", passes=False)


class Unanswered(SegueError):
    """A person didn't answer a question in time, or it was withdrawn. The message says which."""


class TooLong(SegueError):
    """The transcript exceeds the model's window.

    The gateway summarizes it and asks again. An agent raises this before its first word.
    """


class Disconnected(SegueError):
    """The account's connection is down. The message says why and what to do; it carries no secret."""


class SendError(SegueError):
    """A platform didn't accept a message."""


class SendLater(SendError):
    """The platform refused the message for now; nothing was sent."""

    def __init__(self, why: str, seconds: float | None = None) -> None:
        super().__init__(why)
        self.seconds = seconds


class Unreachable(SendLater):
    """The platform can't be reached; nothing was sent."""


class SendNever(SendError):
    """The platform will never accept this message; nothing was sent."""


class MessageGone(SendNever):
    """The message to change doesn't exist any more: somebody deleted it."""


class InDoubt(SendNever):
    """An earlier attempt may have sent the message.

    The message must not be sent twice, so Segue asks its owner.
    """


class SendUnsure(SendError):
    """The call broke off: the platform may or may not have accepted the message."""


class Fenced(SegueError):
    """Another replica owns this now: drop the work, write nothing."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is held by another replica now; this one must drop its work.")
