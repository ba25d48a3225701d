"""Messages in and out: their parts, arrivals as they came, deliveries until they are receipts."""

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import TypeVar

import msgspec

from segue.core.lanes import Address, Identity, Place
from segue.core.questions import listed
from segue.core.values import Moment, Plain, Value
from segue.errors import Invalid

LONGEST_TEXT = 16 * 1024 * 1024
"""Characters of one message as it is kept: more than any platform's message has, few enough to hold in memory."""
DEEPEST = 100
"""Lists and objects inside each other, in what a tool or a model gave: what was written must be readable everywhere."""


class Text(Value, frozen=True, tag="text"):
    """Words, in markdown."""

    text: str


class File(Value, frozen=True, tag="file"):
    """Something that isn't text: where it is kept and what it is."""

    name: str
    media: str
    """Its media type, such as image/png."""
    where: str
    """A path in the data folder, or an address that the platform gave; empty until it was fetched."""
    size: int = 0


class Reasoning(Value, frozen=True, tag="reasoning"):
    """A thought of a model in its provider's own form, kept verbatim."""

    provider: str
    raw: Plain


class ToolCall(Value, frozen=True, tag="call"):
    """The agent asked for a tool."""

    id: str
    name: str
    arguments: Plain


class ToolResult(Value, frozen=True, tag="result"):
    """The tool's answer."""

    id: str
    """The id of the call."""
    content: Plain
    failed: bool = False


class Notice(Value, frozen=True, tag="notice"):
    """A line that the gateway itself says."""

    text: str


class Aside(Value, frozen=True, tag="aside"):
    """Something that the gateway tells the agent alone; people aren't shown it."""

    text: str


class Citing(StrEnum):
    """Why a message cites another."""

    REPLY = "reply"
    FORWARD = "forward"


class Citation(Value, frozen=True, tag="citation"):
    """Words of somebody else, which a message answers or passes on: never the speaker's own."""

    text: str
    author: str = ""
    """The platform's id of who said it, as far as that is known."""
    name: str = ""
    kind: Citing = Citing.REPLY


class Summary(Value, frozen=True, tag="summary"):
    """A summary of the entries up to and including one; the entries themselves stay where they are."""

    text: str
    session: str
    n: int
    """The last entry that the summary stands for."""


class Swap(Value, frozen=True, tag="swap"):
    """Word that another agent answers from here on; the newest on a path decides, so undo and branches know it."""

    agent: str
    """Its name; empty for the default one."""


class SetAside(Value, frozen=True, tag="set_aside"):
    """Word that no agent is told again what its turn asked: a model's provider refused it."""


class Stone(Value, frozen=True, tag="stone"):
    """A stone: something stood here, and somebody had it forgotten."""

    at: Moment
    by: str = ""
    """The person who had it forgotten; empty if the host's retention did."""


class Undo(Value, frozen=True, tag="undo"):
    """An order to take exchanges back; 0 takes back the last, or the reset that it came with."""

    count: int = 0


class Retry(Value, frozen=True, tag="retry"):
    """An order to ask the last exchange again."""


class Rewind(Value, frozen=True, tag="rewind"):
    """An order to go back to an entry."""

    session: str = ""
    n: int = 0


class Redo(Value, frozen=True, tag="redo"):
    """An order to go forward to an entry that an undo left, if the session still ends where that undo took it."""

    session: str = ""
    n: int = 0
    left_session: str = ""
    left_n: int = 0
    """Where the undo took the session; 0 if that is its start."""


class Compress(Value, frozen=True, tag="compress"):
    """An order to sum up what was said; `focus` is to be kept above all."""

    focus: str = ""


class Opening(Value, frozen=True, tag="opening"):
    """Word to the agent that a handoff brought its session to a new place; both as people name them."""

    origin: str
    place: str


class Parting(Value, frozen=True, tag="ending"):
    """Word to the agent that its session is about to be reset, in the agent's or the host's own words."""

    text: str


class Sent(Value, frozen=True, tag="sent"):
    """Words of another session's agent, or of a script."""

    text: str
    sender: str = ""
    """The session that sends them, if whoever gets them can't know it."""
    label: str = ""
    child: bool = False
    """Whether that is a child of the session that gets them."""
    own: bool = False
    """Whether a program says them for the turn's person: they are theirs."""


class ChildResult(Value, frozen=True, tag="found"):
    """The result of a child session's task."""

    text: str
    session: str
    label: str


class DueWork(Value, frozen=True, tag="due"):
    """Scheduled work whose time has come."""

    task: str
    line: str
    zone: str
    due: Moment
    at: Moment
    """When its turn was queued."""
    missed: int = 0


Order = Undo | Redo | Retry | Rewind | Compress
"""The content of a turn that moves the tip."""
Prompting = Opening | Parting | Sent | ChildResult | DueWork
"""The content of a turn that nobody's message began; the transcript gets it in words."""
Part = (
    Text
    | File
    | Reasoning
    | ToolCall
    | ToolResult
    | Notice
    | Aside
    | Citation
    | Summary
    | Swap
    | SetAside
    | Stone
    | Order
    | Prompting
)
Parts = tuple[Part, ...]

P = TypeVar("P", bound=Value)
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Parts)


def encode_parts(parts: Parts) -> str:
    """Parts as JSON text, fit for either database."""
    try:
        text = _encoder.encode(parts).decode()
    except UnicodeEncodeError as error:
        fix = "Replace it: half of a UTF-16 pair is no character."
        raise Invalid("text", "it has a lone surrogate", fix) from error
    except RecursionError as error:
        raise _too_deep() from error
    if len(text) > LONGEST_TEXT:
        fix = f"Keep it under {LONGEST_TEXT // 1024 // 1024} MB, or send it as a file."
        raise Invalid("text", f"it has {len(text):,} characters", fix)
    if "\\u0000" in text or text.count("[") + text.count("{") > DEEPEST:
        for part in msgspec.json.decode(text):
            _check(part, DEEPEST + 1)
    return text


def decode_parts(text: str) -> Parts:
    """The parts that `encode_parts` wrote."""
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise Invalid("parts", str(error), "Each part is an object with a type: text, file, reasoning, ...") from error


def cleaned(part: P) -> P:
    """The same without what no database and no platform takes: NUL, and halves of UTF-16 pairs."""
    try:
        if b"\\u0000" not in _encoder.encode(part):
            return part
    except UnicodeEncodeError:
        """Half of a pair is in it."""
    except RecursionError:
        return part  # `encode_parts` says what is wrong with it
    return msgspec.convert(_clean(msgspec.to_builtins(part)), type(part))


def _clean(value: Plain) -> Plain:
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_clean(inside) for inside in value]
    if isinstance(value, dict):
        return {_clean(key): _clean(inside) for key, inside in value.items()}
    return value


def plain_text(parts: Parts) -> str:
    """The words of a message, without its tools and thoughts."""
    return "\n\n".join(part.text for part in parts if isinstance(part, Text | Notice | Summary))


def told(parts: Parts) -> str:
    """The words of a message, with what only the agent is told."""
    return "\n\n".join(part.text for part in parts if isinstance(part, Text | Notice | Aside | Summary))


def in_words(parts: Parts) -> str:
    """The words of a message; one without any is told by its files."""
    files = (f"({part.name}, {part.media or 'a file'})" for part in parts if isinstance(part, File))
    return plain_text(parts) or "\n".join(files)


def _check(value: object, depth: int) -> None:
    """Refuse a real NUL (not the six characters that look like one) and what is nested deeper than this."""
    if isinstance(value, str):
        if "\0" in value:
            raise Invalid("text", "it has a NUL character", "Remove it: databases can't keep one.")
    elif isinstance(value, dict | list):
        if not depth:
            raise _too_deep()
        for inside in [*value, *value.values()] if isinstance(value, dict) else value:
            _check(inside, depth - 1)


def _too_deep() -> Invalid:
    return Invalid("parts", f"lists and objects are nested more than {DEEPEST} deep", "Keep them flatter.")


class Speaker(Value, frozen=True):
    """The sender of an arrival, as the platform tells it."""

    identity: Identity
    name: str = ""
    aliases: tuple[str, ...] = ()
    """Other user ids of the same person on this account."""
    sole: str = ""
    """The one among them that is never given to anybody else, and of which a person has one at a time, if there is
    one: a number, say, may be given to another person."""


class Telling(StrEnum):
    """The knowledge of a message about its place's topic."""

    NOW = "now"
    """It tells the topic that holds."""
    ONCE = "once"
    """At most it tells what the topic once was: one that is known stays."""


class Pressed(Value, frozen=True):
    """A button that somebody pressed."""

    message: str
    """The platform's id of the message that has the button."""
    choice: str
    """The words on the button: one of that delivery's choices."""


MOST_ALIASES = 8
"""Other ids of a chat, or of a person, that count of one arrival: each is settled in the one transaction."""


class Arrival(Value, frozen=True):
    """One message as it came in."""

    place: Place
    message: str
    """The platform's own id of the message."""
    speaker: Speaker
    parts: Parts
    """The words and files; none, if only the place and its ids are to be remembered."""
    at: Moment
    seen_as: tuple[str, ...] = ()
    """Keys that tell a redelivery, beside the message id."""
    quotes: str = ""
    """The message that it answers."""
    edits: str = ""
    """The message that it replaces."""
    mentions_agent: bool = False
    brings_agent: bool = False
    """The speaker brought the agent into this place."""
    chat_aliases: tuple[str, ...] = ()
    """Other ids of the same chat."""
    topic: Telling = Telling.NOW
    cites: tuple[Citation, ...] = ()
    remarks: tuple[str, ...] = ()
    """Remarks about the message for the agent that nobody said, such as that a file was too large."""
    deletes: str = ""
    """The message that its author took back on the platform; if nobody is its speaker, it was whoever wrote it."""
    pressed: Pressed | None = None
    album: str = ""
    """The platform's id of the album that it is a picture of; empty for what is a message by itself."""

    @property
    def bounded(self) -> "Arrival":
        """The same with as many other ids of its chat and its speaker as count."""
        if max(len(self.chat_aliases), len(self.speaker.aliases)) <= MOST_ALIASES:
            return self
        speaker = msgspec.structs.replace(self.speaker, aliases=self.speaker.aliases[:MOST_ALIASES])
        return msgspec.structs.replace(self, speaker=speaker, chat_aliases=self.chat_aliases[:MOST_ALIASES])

    @property
    def heard(self) -> "Arrival":
        """The same with all that reaches the agent among its parts: citations, what a button says, remarks."""
        if not (self.cites or self.remarks or (self.pressed and not self.parts)):
            return self
        said = self.parts or ((Text(self.pressed.choice),) if self.pressed else ())
        parts = (*self.cites, *said, *map(Aside, self.remarks))
        meant = self.mentions_agent or self.pressed is not None
        return msgspec.structs.replace(self, parts=parts, mentions_agent=meant, cites=(), remarks=())

    def without(self, ids: Collection[str]) -> "Arrival":
        """The same by the other ids of whoever sent it, and of their private chat."""
        address, speaker = self.place.address, self.speaker
        user, *aliases = (one for one in (speaker.identity.user, *speaker.aliases) if one not in ids)
        identity = msgspec.structs.replace(speaker.identity, user=user)
        known = msgspec.structs.replace(speaker, identity=identity, aliases=tuple(aliases))
        chat, *others = [one for one in (address.chat, *self.chat_aliases) if one not in ids] or [address.chat]
        place = msgspec.structs.replace(self.place, address=msgspec.structs.replace(address, chat=chat))
        return msgspec.structs.replace(self, speaker=known, place=place, chat_aliases=tuple(others))

    @property
    def unfetched(self) -> tuple[File, ...]:
        """The files that it names and that aren't here yet."""
        return tuple(part for part in self.parts if isinstance(part, File) and not part.where)

    def with_files(self, taken: Iterable[File | str]) -> "Arrival":
        """The same with files in place of the unfetched ones, and a remark for each that couldn't be had."""
        given = tuple(taken)
        words = tuple(part for part in self.parts if not isinstance(part, File) or part.where)
        files = tuple(one for one in given if isinstance(one, File))
        remarks = tuple(one for one in given if isinstance(one, str))
        return msgspec.structs.replace(self, parts=(*words, *files), remarks=(*self.remarks, *remarks))

    @property
    def settled(self) -> "Arrival":
        """The same for good: files that were never fetched are told in words."""
        return self.with_files(f"{file.name} wasn't fetched." for file in self.unfetched)

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key under which a redelivery of this arrival could come; message ids are told apart by their chat."""
        message = f"{self.place.address.outside.key}{self.message}" if self.message else ""
        return tuple(dict.fromkeys(key for key in (message, *self.seen_as) if key))


PLACEHOLDER = "…"
"""The text of a placeholder, until the real one is there."""


class Sending(StrEnum):
    """The means by which a resend after a crash is kept from doubling, declared by each adapter."""

    KEYED = "A"
    """The same key gives the same message."""
    READ_BACK = "B"
    """Look whether it is there before sending again."""
    EDIT = "C"
    """Send a placeholder, keep its id, edit it to the final text."""
    BLIND = "D"
    """At least once, marked as perhaps a duplicate; or at most once, if the host says so."""


class Delivery(Value, frozen=True):
    """One outgoing message."""

    id: str
    address: Address
    session: str
    entry: int
    """The entry that it shows; 0 for a notice that is in no transcript."""
    text: str
    key: str
    """The same for every attempt."""
    message: str = ""
    """The platform's id once it was sent, or of the placeholder that it edits."""
    attempt: int = 0
    doubtful: int = 0
    """Earlier attempts of which nobody knows whether the platform took them."""
    answers: tuple[str, ...] = ()
    """The platform ids of the arrivals that it answers, the last one last."""
    choices: tuple[str, ...] = ()
    """Answers to it: buttons where the platform has them. Of what isn't a command, a numbered list stands elsewhere."""
    only: str = ""
    """The platform's id of the one person who is to see it; empty for everybody there."""
    file: File | None = None
    """A message that is a file, in the data folder; its text, if there is one, stands beneath it."""
    chats: tuple[str, ...] = ()
    """Other ids of the chat, the newest last; told only to an adapter that sends by any of them."""

    @property
    def answered(self) -> str:
        """The last of the arrivals that it answers; empty if there is none."""
        return self.answers[-1] if self.answers else ""

    def with_text(self, text: str) -> "Delivery":
        """The same delivery with another text."""
        return msgspec.structs.replace(self, text=text)

    @property
    def placeholder(self) -> "Delivery":
        """The placeholder that is sent ahead; a key of its own, or a resend of the final text would find this."""
        return msgspec.structs.replace(self, text=PLACEHOLDER, key=f"{self.key}/placeholder", file=None, choices=())

    @property
    def may_have_placeholder(self) -> bool:
        """Whether a placeholder with an unknown id may be there: it is in doubt, and so is every attempt."""
        return not self.message and self.doubtful >= self.attempt > 0

    @property
    def without_buttons(self) -> "Delivery":
        """The same with its choices as a numbered list; commands are named in the text already."""
        choices = [choice for choice in self.choices if not choice.startswith("/")]
        if not choices or choices[0] == "1":
            return self
        return msgspec.structs.replace(self, text=f"{self.text}\n\n{listed(choices)}", choices=())

    def with_message(self, message: str) -> "Delivery":
        """The same delivery as an edit of a message."""
        return msgspec.structs.replace(self, message=message)


class Outgoing(Value, frozen=True):
    """A delivery that this replica holds."""

    id: int
    me: str
    delivery: Delivery
    waited: float
    """Seconds since it was to be sent first, when it was taken, by the database's own clock."""
    sequel: str = ""
    """The id of what hangs on it, if it is the last message of a turn that has a sequel."""
    report: str = ""
    """The platform's word about it, on a platform that tells later what became of a message: one of `SendStatus`."""
    error: str = ""
    """The reason that it wasn't sent by the last attempt."""


class SendStatus(StrEnum):
    """Words of a platform that tells later what became of a message."""

    TAKEN = "taken"
    """It was taken, and nothing was told of it yet."""
    SENT = "sent"
    LATER = "later"
    """It wasn't sent, and may be sent again."""
    NEVER = "never"
    """It can't ever be sent."""


class Receipt(Value, frozen=True):
    """A delivery that was sent: lets a quote find its session."""

    address: Address
    message: str
    session: str
    entry: int
    at: Moment
