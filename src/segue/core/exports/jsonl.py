"""Sessions apart from any database, and their JSONL: text that leaves the house and comes back whole.

Law: a header, then one line an entry, numbered 1, 2, 3 and so on, each with the number of the entry before it; so every
branch comes back. Then a line for each move of the tip and for what each turn cost; the bytes of files may follow.
Reading is strict: a line that we wouldn't have written is named and refused, and nothing is guessed.
"""

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import TypeVar

import msgspec

from segue.core.bindings import TipChange
from segue.core.contracts.agents import Usage
from segue.core.lanes import clean_name
from segue.core.messages import File, Part, Parts, Summary, encode_parts
from segue.core.titles import Title, new_title, parse
from segue.core.transcripts import NOWHERE, Author, Entry, Session, Source, Tip, TipMove
from segue.core.values import LAST_MOMENT, Moment, SessionId, Value
from segue.errors import Invalid

T = TypeVar("T")
VERSION = 3
"""The form that is written. The first had neither moves, costs, links nor sources, the second no origins of entries."""
DAMAGED = "Export the session again: this text was cut off or changed."
_MOST = 2**53


class Form(StrEnum):
    """The format of an export."""

    JSONL = "jsonl"
    """One entry a line, with every branch; importing it gives the same session."""
    MARKDOWN = "markdown"
    """The transcript up to the tip, for people to read."""


_SESSION = "session/"
_WRITTEN = {Form.MARKDOWN: ("md", "text/markdown"), Form.JSONL: ("jsonl", "application/jsonl")}


def export_of(session: SessionId, form: Form, name: str) -> File:
    """A session as a file that isn't made yet."""
    ending, media = _WRITTEN[form]
    return File(f"{name}.{ending}", media, f"{_SESSION}{form}/{session}")


def export_named_by(file: File) -> tuple[SessionId, Form] | None:
    """The session that a file is to hold, and its form; None for a file that is there already."""
    if not file.where.startswith(_SESSION):
        return None
    form, _, session = file.where.removeprefix(_SESSION).partition("/")
    return SessionId(session), Form(form)


class Line(Value, frozen=True, forbid_unknown_fields=True):
    """One entry of a transcript; a summary in it names its last entry by number and leaves the session empty."""

    number: int
    parent: int | None
    author: Author
    parts: Parts
    at: Moment
    turn: int = 0
    source: Source = NOWHERE
    origin: Tip | None = None
    """The entry of another session that this one goes on from; such entries come first."""


class Leap(Value, frozen=True, forbid_unknown_fields=True):
    """A move of the tip, by the numbers of its entries."""

    before: int | None
    after: int | None
    why: TipMove
    by: str
    at: Moment


class Cost(Value, frozen=True, forbid_unknown_fields=True):
    """The cost of one turn with one model, and the size of its last request."""

    turn: int
    usage: Usage
    size: int
    at: Moment


class Transcript(Value, frozen=True):
    """A whole session, by numbers instead of ids."""

    began: Moment
    used: Moment
    lines: tuple[Line, ...]
    tip: int | None = None
    title: str = ""
    leaps: tuple[Leap, ...] = ()
    costs: tuple[Cost, ...] = ()
    session: str = ""
    """Its id in the store that it comes from."""
    parent: str = ""
    """The id there of the session that it is a fork or a child of."""

    @property
    def path(self) -> list[Line]:
        """The transcript up to the tip, oldest entry first."""
        newest_first = []
        at = self.tip
        while at is not None:
            line = self.lines[at - 1]
            newest_first.append(line)
            at = line.parent
        return newest_first[::-1]


class _Version(Value, frozen=True):
    segue: int


class _Header(Value, frozen=True, forbid_unknown_fields=True):
    segue: int
    title: str
    began: Moment
    used: Moment
    tip: int | None
    entries: int
    moves: int = 0
    costs: int = 0
    session: str = ""
    parent: str = ""
    files: int = 0


_version = msgspec.json.Decoder(_Version)
_header = msgspec.json.Decoder(_Header)
_line = msgspec.json.Decoder(Line)
_leap = msgspec.json.Decoder(Leap)
_cost = msgspec.json.Decoder(Cost)


def transcript_of(
    session: Session, entries: Sequence[Entry], moves: Sequence[TipChange] = (), costs: Sequence[Cost] = ()
) -> Transcript:
    """A session and its entries, numbered as they come; none may come before its parent, nor be missing for a move."""
    numbers = {entry.tip: number for number, entry in enumerate(entries, 1)}
    lines = [
        Line(
            numbers[entry.tip],
            numbers[entry.parent] if entry.parent else None,
            entry.author,
            tuple(_numbered(part, numbers) for part in entry.parts),
            entry.at,
            entry.turn,
            entry.source,
            None if entry.tip.session == session.id else entry.tip,
        )
        for entry in entries
    ]
    leaps = [
        Leap(
            numbers[move.before] if move.before else None,
            numbers[move.after] if move.after else None,
            move.why,
            move.by,
            move.at,
        )
        for move in moves
    ]
    tip = numbers[session.tip] if session.tip else None
    name, number = parse(session.title)
    return Transcript(
        session.began,
        session.used,
        tuple(lines),
        tip,
        str(Title(name, number or 1)),
        tuple(leaps),
        tuple(costs),
        session.id,
        session.parent or "",
    )


def to_jsonl(transcript: Transcript, files: int = 0) -> str:
    """A transcript as text, with every branch, which the bytes of so many files are to follow."""
    rows = (*transcript.lines, *transcript.leaps, *transcript.costs)
    header = _Header(
        VERSION,
        transcript.title,
        transcript.began,
        transcript.used,
        transcript.tip,
        len(transcript.lines),
        len(transcript.leaps),
        len(transcript.costs),
        transcript.session,
        transcript.parent,
        files,
    )
    return "".join(msgspec.json.encode(value).decode() + "\n" for value in (header, *rows))


def from_jsonl(text: str) -> Transcript:
    """The transcript that `to_jsonl` wrote."""
    texts = lines_of(text)
    check_version(decode(_version, texts[0], 1).segue, 1, range(1, VERSION + 1))
    header = decode(_header, texts[0], 1)
    _check_header(header, len(texts) - 1)
    moves = header.entries + 1
    costs = moves + header.moves
    files = costs + header.costs
    leaps = enumerate(texts[moves:costs], moves + 1)
    return Transcript(
        header.began,
        header.used,
        tuple(_checked(decode(_line, line, at), at) for at, line in enumerate(texts[1:moves], 2)),
        header.tip,
        checked_title(header.title, 1),
        tuple(_checked_leap(decode(_leap, line, at), header, at) for at, line in leaps),
        tuple(_checked_cost(decode(_cost, line, at), at) for at, line in enumerate(texts[costs:files], costs + 1)),
        header.session,
        header.parent,
    )


def files_after(text: str) -> int:
    """The number of files whose bytes follow an export's text."""
    return decode(_header, lines_of(text)[0], 1).files


def lines_of(text: str) -> list[str]:
    """The lines of a text; only a newline ends one."""
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise invalid(1, "there is nothing in it", "Give the text of an export.")
    return lines


def decode(decoder: msgspec.json.Decoder[T], text: str, at: int) -> T:
    """The value in a line."""
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise invalid(at, str(error), DAMAGED) from error


def check_version(version: int, at: int, known: range) -> None:
    """Refuse what another Segue wrote in a way that this one doesn't know."""
    if version not in known:
        raise invalid(at, f"it is of version {version}, not {known[-1]}", "Import it with the Segue that wrote it.")


def checked_title(text: str, at: int) -> str:
    """A title as `/title` would take it, with its number in the lineage."""
    if not text:
        return ""
    name, number = parse(text)
    try:
        new_title(name)
    except Invalid as error:
        raise invalid(at, f"of its title, {error.problem}", error.fix) from error
    return name if number is None else f"{name} #{number}"


def check_moment(moment: Moment, at: int) -> None:
    """Refuse what no calendar can name."""
    if not 0 <= moment < LAST_MOMENT:
        raise invalid(at, f"{moment} is not a time", DAMAGED)


def check_parts(parts: Parts, number: int, at: int) -> None:
    """Refuse parts that a database couldn't keep, or that sum up what doesn't lie above entry `number`."""
    try:
        encode_parts(parts)
    except Invalid as error:
        raise invalid(at, error.problem, error.fix) from error
    for part in parts:
        if isinstance(part, Summary) and (part.session or not 0 <= part.n < number):
            raise invalid(at, "its summary doesn't stand for entries above", DAMAGED)


def invalid(at: int, problem: str, fix: str) -> Invalid:
    """The error for a line of a text, counted from 1."""
    return Invalid(f"line {at}", problem, fix)


def _numbered(part: Part, numbers: dict[Tip, int]) -> Part:
    if isinstance(part, Summary):
        return Summary(part.text, "", numbers.get(Tip(SessionId(part.session), part.n), 0))
    return part


def _checked(line: Line, at: int) -> Line:
    """A line as it may be kept; `at` is where it stands, one more than its number must be."""
    if line.number != at - 1:
        raise invalid(at, f"its number is {line.number} and {at - 1} is due", DAMAGED)
    if line.parent is not None and not 1 <= line.parent < line.number:
        raise invalid(at, f"its parent, {line.parent}, is not the number of an entry above", DAMAGED)
    _check_number("turn", line.turn, at)
    _check_words("person", line.author.person, at)
    _check_words("source", line.source.identity + line.source.address, at)
    if line.origin:
        _check_words("origin", line.origin.session, at)
        _check_number("origin", line.origin.n, at)
    check_moment(line.at, at)
    check_parts(line.parts, line.number, at)
    author = Author(line.author.role, line.author.person, clean_name(line.author.name))
    return msgspec.structs.replace(line, author=author)


def _check_header(header: _Header, following: int) -> None:
    told = header.entries + header.moves + header.costs
    counts = (header.entries, header.moves, header.costs, header.files)
    if min(counts) < 0 or told > following or (told < following and not header.files):
        many = f"{header.entries} entries, {header.moves} moves and {header.costs} costs"
        raise invalid(1, f"it tells of {many}, and {following} lines follow", DAMAGED)
    _check_tip(header.tip, header, 1)
    check_moment(header.began, 1)
    check_moment(header.used, 1)
    _check_words("id", header.session + header.parent, 1)


def _checked_leap(leap: Leap, header: _Header, at: int) -> Leap:
    _check_tip(leap.before, header, at)
    _check_tip(leap.after, header, at)
    _check_words("person", leap.by, at)
    check_moment(leap.at, at)
    return leap


def _checked_cost(cost: Cost, at: int) -> Cost:
    usage = cost.usage
    _check_words("model", usage.model, at)
    counts = (cost.turn, cost.size, usage.input, usage.output, usage.reasoning, usage.cache_read, usage.cache_write)
    for count in counts:
        _check_number("count", count, at)
    if usage.cost is not None and not math.isfinite(usage.cost):
        raise invalid(at, "its cost is not a number", DAMAGED)
    check_moment(cost.at, at)
    return cost


def _check_tip(tip: int | None, header: _Header, at: int) -> None:
    if tip is not None and not 1 <= tip <= header.entries:
        raise invalid(at, f"its tip, {tip}, is not the number of an entry", DAMAGED)


def _check_number(name: str, number: int, at: int) -> None:
    if not 0 <= number <= _MOST:
        raise invalid(at, f"its {name}, {number}, is out of range", DAMAGED)


def _check_words(name: str, words: str, at: int) -> None:
    if "\0" in words:
        raise invalid(at, f"its {name} has a NUL character", DAMAGED)
