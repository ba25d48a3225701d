"""Frames of the window's wire, in both directions: one definition for the gateway, the terminal, scripts and the page.

Law: a frame is a JSON object whose `kind` says which of these it is. A window opens with an `OpenRequest`, then is sent
the end of its session's transcript, and from there on only what is new; what came earlier it asks for by the cursor
that it was given. A window that lost its connection opens anew, so nothing is lost or doubled.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from segue.changes.exchange.traces import TurnState
from segue.core.handoffs import HandoffProgress, State
from segue.core.messages import File, Parts
from segue.core.transcripts import Role, Tip
from segue.core.values import Moment, SessionId, Value

PAGE = 50
"""Entries that a window is sent at once if it asks for no other number."""
LISTED = 50
"""Sessions of a list, or of one page of it."""
LONGEST_NAME = 64
"""Characters of a lane's name, and of a session's id."""
MOST = 500
"""Entries that a window is sent at once at most."""


def _tag(name: str) -> str:
    """The `kind` of a frame: its class's name, without what all of them end in."""
    return name.removesuffix("Request").removesuffix("Frame").lower()


class Begins(StrEnum):
    """The conversation that a window opens on."""

    LAST = "last"
    """The lane's; where it has none, the last of its person's."""
    OWN = "own"
    """The same, unless another window looks at that lane now: then a new one, in a lane beside it."""
    JOINED = "joined"
    """The conversation of the window that looks at the lane now, in a lane beside it."""
    NEW = "new"
    """A new one, in the lane or beside it likewise."""
    HERE = "here"
    """The lane's, if it has one: a script says itself which session it means."""


class WindowRequest(Value, frozen=True, tag_field="kind", tag=_tag, forbid_unknown_fields=True):
    """Something that a window asks for."""


class OpenRequest(WindowRequest, frozen=True):
    """The first frame of every window: what it is to show."""

    page: int = PAGE
    """Entries that are sent at once."""
    lane: Annotated[str, Meta(max_length=LONGEST_NAME)] = ""
    """The name of a lane beside the person's own, such as a script's."""
    begins: Begins = Begins.LAST
    session: Annotated[SessionId, Meta(max_length=LONGEST_NAME)] | None = None
    """A session to resume; the id of the new one, if a new one is to begin."""
    whole: bool = False
    """Whether it shows thoughts and tools too, as an editor does."""


class SaidFile(Value, frozen=True):
    """A file that comes with a message."""

    name: str
    media: str
    data: bytes


class SayRequest(WindowRequest, frozen=True):
    """The person says something, or types a command. The same id again is the same message."""

    id: Annotated[str, Meta(min_length=1, max_length=200, pattern=r"\A[^\x00]*\Z")]
    text: str
    files: tuple[SaidFile, ...] = ()


class EarlierRequest(WindowRequest, frozen=True):
    """More of the transcript, from the cursor that the window was given last."""

    cursor: Tip


class ResumeRequest(WindowRequest, frozen=True):
    """Turn to another session, as /resume does."""

    session: SessionId


class HandoffRequest(WindowRequest, frozen=True):
    """Hand a session off from wherever it is spoken to."""

    session: SessionId
    destination: str
    yes: bool = False
    """More people may read the session there."""


class CommandsRequest(WindowRequest, frozen=True):
    """The commands that can be typed."""


class SessionsRequest(WindowRequest, frozen=True):
    """The person's own sessions."""

    after: SessionId | None = None
    """The last one of the page before."""


class SearchRequest(WindowRequest, frozen=True):
    """The person's own sessions in which something was said."""

    words: str


Asked = (
    OpenRequest
    | SayRequest
    | EarlierRequest
    | ResumeRequest
    | HandoffRequest
    | CommandsRequest
    | SessionsRequest
    | SearchRequest
)
"""Every request of a window."""


class ShownCommand(Value, frozen=True):
    """A command that can be typed."""

    name: str
    usage: str
    does: str


class ShownSession(Value, frozen=True):
    """A session as a window names it."""

    id: SessionId
    title: str
    text: str = ""
    """Words of it, in a list."""
    closed: bool = False
    used: Moment = 0.0
    """When it was used last, in a list."""


class ShownEntry(Value, frozen=True):
    """One entry of a transcript."""

    tip: Tip
    role: Role
    name: str
    text: str
    at: Moment
    files: tuple[File, ...] = ()
    mine: bool = False
    """Whether the person of the window said it, wherever."""
    failed: bool = False
    """Whether it says that a turn failed for good."""
    here: bool = False
    """Whether it was said in the window's own lane."""
    parts: Parts = ()
    """All that it holds, in a window that shows it whole."""


class ShownTurn(Value, frozen=True):
    """A message that waits for its answer."""

    id: str
    name: str
    text: str
    at: Moment
    mine: bool = False


class ShownAnswer(Value, frozen=True):
    """One thing that was answered."""

    text: str
    files: tuple[File, ...] = ()


class ShownQuestion(Value, frozen=True):
    """Something that the person of a window is asked; `/answer ID TEXT` answers it from any window."""

    id: str
    words: str
    choices: tuple[str, ...] = ()
    """None, if any words will do."""
    deadline: Moment = 0.0
    here: bool = False
    """Whether it is asked in the window's own lane: there a choice can be typed as it is."""
    session: SessionId | None = None
    """The session whose turn asks; None if Segue itself does."""


class WindowFrame(Value, frozen=True, tag_field="kind", tag=_tag):
    """Something that a window is sent."""


class TranscriptFrame(WindowFrame, frozen=True):
    """The end of a transcript, in place of all that the window shows: it opens, turns to another session, or went back.

    What waits follows in a `WaitingFrame`.
    """

    session: ShownSession | None
    entries: tuple[ShownEntry, ...] = ()
    earlier: Tip | None = None
    """A cursor at what came before; None if that is all."""


class EntriesFrame(WindowFrame, frozen=True):
    """New entries at the end of the transcript, or a new title. What waits follows in a `WaitingFrame`."""

    session: ShownSession | None
    entries: tuple[ShownEntry, ...] = ()


class EarlierFrame(WindowFrame, frozen=True):
    """Entries that came before all that the window shows."""

    entries: tuple[ShownEntry, ...]
    earlier: Tip | None = None


class WaitingFrame(WindowFrame, frozen=True):
    """The messages that are not answered yet."""

    turns: tuple[ShownTurn, ...] = ()


class GrowingFrame(WindowFrame, frozen=True):
    """New words of the answer that is being written."""

    text: str
    begins: bool = False
    """Whether they take the place of all that grew so far."""


class GrowthFrame(WindowFrame, frozen=True):
    """The answer that is being written, in a window that shows it whole: all of its parts from one on."""

    turn: int
    at: int
    """The number of the first part given; those before it stay as they are."""
    parts: Parts
    more: bool = False
    """Whether the first part given is the rest of a text that was sent before."""
    doing: str = ""
    answers: tuple[str, ...] = ()
    """The messages that it answers, as they wait."""


class NoticeFrame(WindowFrame, frozen=True):
    """Something that Segue says and that is in no transcript."""

    text: str
    files: tuple[File, ...] = ()


class QuestionsFrame(WindowFrame, frozen=True):
    """All that the person is asked, wherever, in place of what was shown before."""

    questions: tuple[ShownQuestion, ...] = ()


class AcceptedFrame(WindowFrame, frozen=True):
    """A message is durable; sent before it is shown among those that wait or were answered."""

    id: str


class AnsweredFrame(WindowFrame, frozen=True):
    """A message of this window has its answer; sent after the answer was shown."""

    id: str
    said: tuple[ShownAnswer, ...] = ()
    session: ShownSession | None = None
    """None if a command was answered, which is in no session."""
    turn: int = 0
    state: TurnState = TurnState.ANSWERED


class HandoffFrame(WindowFrame, frozen=True):
    """The step of a handoff of this conversation."""

    id: str
    state: State
    step: HandoffProgress
    to: str
    error: str = ""


class RefusedFrame(WindowFrame, frozen=True):
    """A handoff or a session that the window asked for can't be had."""

    text: str


class InvitationFrame(WindowFrame, frozen=True):
    """A way to take the conversation along: a code, links that type it, and accounts where a person types it."""

    code: str
    links: Mapping[str, str]
    typed: tuple[str, ...]


class CommandsFrame(WindowFrame, frozen=True):
    """The commands that can be typed."""

    commands: tuple[ShownCommand, ...]


class SessionsFrame(WindowFrame, frozen=True):
    """The person's own sessions, the last used first."""

    sessions: tuple[ShownSession, ...]


class FoundFrame(WindowFrame, frozen=True):
    """The sessions that have the words that were searched for."""

    words: str
    sessions: tuple[ShownSession, ...]


Shown = (
    TranscriptFrame
    | EntriesFrame
    | EarlierFrame
    | WaitingFrame
    | GrowingFrame
    | GrowthFrame
    | NoticeFrame
    | QuestionsFrame
    | AcceptedFrame
    | AnsweredFrame
    | HandoffFrame
    | RefusedFrame
    | InvitationFrame
    | CommandsFrame
    | SessionsFrame
    | FoundFrame
)
"""Every frame for a window."""

requests = msgspec.json.Decoder(Asked)
"""Reads what a window sends."""


def encode(frame: Asked | Shown) -> str:
    """A frame as it goes over the wire."""
    return msgspec.json.encode(frame).decode()
