"""Questions: something that a person is asked, the choices they have, and what counts as their answer.

Law: a question is open until it is answered, its time is over, or whoever asked wants to know no more. Only the first
of these counts, and none is taken back.
"""

from collections.abc import Sequence
from enum import StrEnum

from segue.core.text.visible import with_codes
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.errors import Invalid

YES, NO = "yes", "no"
YES_OR_NO = (YES, NO)
FOR_THIS_SESSION, ALWAYS = "for this session", "always"
LONGEST = 3_000
"""Characters of a question."""
LONGEST_PERMISSION = 24_000
"""Characters of a question about a permission, which shows all that is to be done, over several messages if need be."""
_PART = 1_500
"""Characters of each of these messages."""
LONGEST_CHOICE = 200
MOST_CHOICES = 20
_BUTTON = 60
"""Bytes of a choice that every platform takes as a button."""
_MARK = "question/"
"""The part of a delivery's key that stands before the id of the question which it shows."""
_WORDS = {"/yes": YES, "/no": NO, "y": YES, "n": NO}
"""Other ways to write a choice."""


class QuestionState(StrEnum):
    """How far a question has come."""

    OPEN = "open"
    ANSWERED = "answered"
    EXPIRED = "expired"
    """Nobody answered in time."""
    WITHDRAWN = "withdrawn"
    """The turn that asked is over, or something else was asked instead."""


class Question(Value, frozen=True):
    """A question as it stands."""

    id: str
    kind: str
    """Name of the step that an answer leads to."""
    body: str
    """Its subject, in the form of its kind."""
    lane: str
    """The key of the lane in which it is asked."""
    person: PersonId
    """Who is asked."""
    approvers: tuple[str, ...]
    """The keys of the identities that may answer instead; none, if it is for its person."""
    words: str
    choices: tuple[str, ...]
    """None, if any words will do."""
    allows: str
    """The doing that an answer for always is kept for; empty, if there is none."""
    session: SessionId | None
    """The session whose turn asks; None if Segue itself does."""
    turn: int
    agent: str
    """The agent that asks; empty, if it is the default one or none."""
    deadline: Moment
    state: QuestionState
    answer: str
    answered_by: str
    """The name of who answered."""

    def open(self, at: Moment) -> bool:
        """Whether an answer still counts."""
        return self.state is QuestionState.OPEN and at <= self.deadline

    def expired(self, at: Moment) -> bool:
        """Whether it went without an answer for too long."""
        return self.state is QuestionState.EXPIRED or (self.state is QuestionState.OPEN and at > self.deadline)

    def choose(self, text: str) -> str | None:
        """The answer that a text is; None if it is none that was offered."""
        text = text.strip()
        if not self.choices:
            return text or None
        said = _WORDS.get(text.casefold(), text.casefold())
        for choice in self.choices:
            if choice.casefold() == said:
                return choice
        if said.isdecimal() and len(said) < 4 and 1 <= int(said) <= len(self.choices):
            return self.choices[int(said) - 1]
        return None

    @property
    def buttons(self) -> tuple[str, ...]:
        """The choices as buttons say them: by their numbers, if one is too long for that."""
        if all(len(choice.encode()) <= _BUTTON for choice in self.choices):
            return self.choices
        return tuple(map(str, range(1, len(self.choices) + 1)))

    @property
    def text(self) -> str:
        """The words as a message; the choices are a list in them only where buttons can't say them."""
        return self.last if self.buttons == self.choices else f"{self.last}\n\n{listed(self.choices)}"

    @property
    def last(self) -> str:
        """The words of the message with the choices: all of them, or the end of long ones."""
        return self._parts[-1]

    @property
    def before(self) -> tuple[str, ...]:
        """Long words up to the last message: messages of their own."""
        return self._parts[:-1]

    @property
    def _parts(self) -> tuple[str, ...]:
        if len(self.words) <= LONGEST:
            return (self.words,)
        return tuple(self.words[begin : begin + _PART] for begin in range(0, len(self.words), _PART))

    @property
    def outcome(self) -> str:
        """Its fate, as its copies say it."""
        match self.state:
            case QuestionState.ANSWERED:
                by = f" ({self.answered_by})" if self.answered_by else ""
                return f"Answered: {self.answer}{by}."
            case QuestionState.EXPIRED:
                return "Nobody answered in time."
            case QuestionState.WITHDRAWN:
                return "This is asked no more."
            case _:
                return ""


def shown_by(key: str) -> str:
    """The id of the question that the message with a delivery's key shows; empty if it shows none."""
    return key.partition(_MARK)[2].partition("/")[0]


def buttons(choices: Sequence[str], longest: int) -> list[tuple[str, str]]:
    """Each choice that a button can hold, once, with the words on it."""
    return [(choice, label(choice)) for choice in dict.fromkeys(choices) if 0 < len(choice) <= longest]


def label(choice: str) -> str:
    """The words on a button: a command without its slash."""
    return choice.removeprefix("/").capitalize()


def listed(choices: Sequence[str]) -> str:
    """Choices as a numbered list."""
    return "\n".join(f"{n}. {choice}" for n, choice in enumerate(choices, 1))


def checked(words: str, choices: Sequence[str], longest: int = LONGEST) -> tuple[str, tuple[str, ...]]:
    """An agent's question in the form in which people are asked; raises `Invalid` if they can't be.

    Characters that would hide or reorder its words are shown as codes.
    """
    words = with_codes(words.strip())
    if not words or len(words) > longest:
        raise Invalid("question", f"it has {len(words):,} characters", f"Give it 1 to {longest:,}.")
    offered = tuple(choice.strip() for choice in choices)
    if len(offered) == 1 or len(offered) > MOST_CHOICES:
        fix = f"Offer 2 to {MOST_CHOICES}, or none: then any words are an answer."
        raise Invalid("choices", f"there {'is one' if len(offered) == 1 else f'are {len(offered):,}'}", fix)
    if any(not choice or len(choice) > LONGEST_CHOICE or "\n" in choice for choice in offered):
        raise Invalid(
            "choices", "one is blank, too long or of several lines", f"Give each 1 to {LONGEST_CHOICE} letters."
        )
    if any(with_codes(choice) != choice for choice in offered):
        raise Invalid("choices", "one has control or direction characters", "Leave those out.")
    if len({choice.casefold() for choice in offered}) < len(offered):
        raise Invalid("choices", "two of them are the same", "Offer each once.")
    return words, offered
