"""Topics of wake-ups: what a transaction tells whoever waits for it, once it is committed."""

from enum import Enum, StrEnum

from segue.core.values import Value


class Topic(StrEnum):
    """The work that there may be to do; each is about a session, an account, a person or nothing in particular."""

    TURNS = "turns"
    """A session has turns and no holder."""
    DELIVERIES = "deliveries"
    """Something waits to be sent by an account."""
    CONNECTIONS = "connections"
    """A connection may be free."""
    SAID = "said"
    """Something was said in a session."""
    HANDOFF = "handoff"
    """A handoff of a session was asked for, or came a step further, or to its end."""
    HIDDEN = "hidden"
    """Something that was said in a session is hidden from now on, or shown again."""
    FORGOTTEN = "forgotten"
    """Something was forgotten: whoever keeps words in memory lets go of them."""
    BEGUN = "begun"
    """A person has a session more."""
    NAMED = "named"
    """A session has another title, or a thread speaks to another session."""
    LETTERS = "letters"
    """A dead letter is to be taken in again."""
    LOOK = "look"
    """Something changed for the turn that runs in a session."""
    ASKED = "asked"
    """A person is asked something, or is asked it no more."""
    NOTED = "noted"
    """A fact was written to the audit."""


class Hearers(Enum):
    """The replicas that are woken."""

    ALL = "every process that shares the database"
    HERE = "this process alone, which has all that is needed"


class Wake(Value, frozen=True):
    """A wake-up that a transaction asks for; only a hint, it may get lost."""

    topic: Topic
    about: str = ""
    """The key of an account, the id of a session or a person, or the event of a fact."""
    hearers: Hearers = Hearers.ALL
