"""Transcripts as Markdown that people read, and that can be read back.

Law: all that somebody said is quoted, line by line. At the margin stand only lines of our own: the mark, the title,
headings, labels, folds with a fence in which a program wrote, and blank lines. So no text can pass for a heading,
whatever is in it.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from segue.core.exports.jsonl import (
    DAMAGED,
    Line,
    Transcript,
    check_moment,
    check_parts,
    check_version,
    checked_title,
    decode,
    invalid,
    lines_of,
)
from segue.core.lanes import clean_name
from segue.core.messages import (
    Aside,
    Citation,
    File,
    Notice,
    Part,
    Reasoning,
    SetAside,
    Stone,
    Summary,
    Swap,
    Text,
    ToolCall,
    ToolResult,
)
from segue.core.transcripts import Author, Role
from segue.core.values import Moment

START = "<!-- segue markdown "
_VERSION = 2
_FENCE = "```"
_UNFOLDED = "</details>"
_MARK = re.compile(START + r"(?P<version>[0-9]{1,9}), began (?P<began>\S+), used (?P<used>\S+) -->")
_HEADING = re.compile(r"## (?P<number>[0-9]{1,15})\. (?:(?P<name>.+) · )?(?P<role>person|agent|gateway) · (?P<at>\S+)")
_LABEL = re.compile(r"\*(?:notice|summary up to entry (?P<upto>[0-9]{1,15}))\*")
_FOLD = re.compile(r"<details><summary>.*</summary>")
_MARKUP = re.compile(r"[\\`*_\[\]<>&~|#]")

# What some programs take for the end of a line is written as a character reference; what looks like one is escaped.
_BREAKS = "\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"
_BREAK = re.compile(f"[{_BREAKS}]")
_CODES = "|".join(str(ord(c)) for c in _BREAKS)
_LIKE_REFERENCE = re.compile(f"&(?=(?:amp;)*#(?:{_CODES});)")
_WRITTEN = re.compile(f"&amp;(?=(?:amp;)*#(?:{_CODES});)|&#(?P<code>{_CODES});")

_Folded = Aside | Citation | File | Reasoning | SetAside | Stone | Swap | ToolCall | ToolResult
_folded: msgspec.json.Decoder[_Folded] = msgspec.json.Decoder(_Folded)
FOLDS: dict[type[Part], str] = {
    Aside: "Told to the agent alone",
    Citation: "Words that this answers or forwards",
    File: "A file",
    Reasoning: "Thoughts",
    SetAside: "No agent is told this again",
    Stone: "Forgotten",
    Swap: "Another agent answers from here on",
    ToolCall: "A tool is called",
    ToolResult: "The tool's result",
}
"""Lines that stand for what isn't said, where it is folded."""


def to_markdown(transcript: Transcript) -> str:
    """The transcript up to the tip, for people to read."""
    return "".join(f"{line}\n" for line in _written(transcript))


def from_markdown(text: str) -> Transcript:
    """The entries that `to_markdown` wrote: the same authors by name, the same parts, times to the millisecond."""
    page = _Page([line.removesuffix("\r") for line in lines_of(text)])
    mark = _MARK.fullmatch(page.take())
    if mark is None:
        raise invalid(1, "it isn't the first line of an export", DAMAGED)
    check_version(int(mark["version"]), 1, range(1, _VERSION + 1))
    began, used = _moment(mark["began"], 1), _moment(mark["used"], 1)
    title = ""
    if page.next is not None and page.next.startswith("# "):
        title = checked_title(_unescape(page.take()[2:]), page.at)
    lines: list[Line] = []
    page.skip_blank()
    while page.next is not None:
        lines.append(_read_entry(page, len(lines) + 1))
    return Transcript(began, used, tuple(lines), len(lines) or None, title)


def _written(transcript: Transcript) -> Iterator[str]:
    yield f"{START}{_VERSION}, began {_stamp(transcript.began)}, used {_stamp(transcript.used)} -->"
    if transcript.title:
        yield f"# {_escape(transcript.title)}"
    path = transcript.path
    numbers = {line.number: number for number, line in enumerate(path, 1)}
    for line in path:
        name = _escape(clean_name(line.author.name))
        who = f"{name} · {line.author.role}" if name else line.author.role
        yield ""
        yield f"## {numbers[line.number]}. {who} · {_stamp(line.at)}"
        for part in line.parts:
            yield ""
            if isinstance(part, Notice):
                yield "*notice*"
            elif isinstance(part, Summary):
                yield f"*summary up to entry {numbers.get(part.n, 0)}*"
            if isinstance(part, Text | Notice | Summary):
                yield from _quoted(part.text)
            else:
                # A line of JSON never begins with a backtick, so nothing in it closes the fence.
                yield f"<details><summary>{FOLDS[type(part)]}</summary>"
                yield ""
                yield f"{_FENCE}json"
                yield msgspec.json.format(msgspec.json.encode(part), indent=2).decode()
                yield _FENCE
                yield _UNFOLDED


def _quoted(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        safe = _BREAK.sub(lambda found: f"&#{ord(found[0])};", _LIKE_REFERENCE.sub("&amp;", line))
        yield f"> {safe}" if safe else ">"


def _unquoted(line: str) -> str:
    return _WRITTEN.sub(lambda found: chr(int(found["code"])) if found["code"] else "&", line[2:])


def _escape(words: str) -> str:
    """Words for a heading, with nothing that Markdown takes for markup."""
    return _MARKUP.sub(r"\\\g<0>", words)


def _unescape(words: str) -> str:
    return re.sub(r"\\(.)", r"\1", words)


def _stamp(at: Moment) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _moment(stamp: str, at: int) -> Moment:
    try:
        moment = datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
    except ValueError as error:
        raise invalid(at, f"{stamp!r} is not a time", DAMAGED) from error
    check_moment(moment, at)
    return moment


class _Page:
    """The lines of an export, and how far they have been read."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self.at = 0
        """The line taken last, counted from 1."""

    @property
    def next(self) -> str | None:
        return self._lines[self.at] if self.at < len(self._lines) else None

    def take(self) -> str:
        self.at += 1
        return self._lines[self.at - 1]

    def skip_blank(self) -> None:
        """Go on to the next line that says something: a fold only says what is in it."""
        while self.next is not None and (not self.next.strip() or self.next == _UNFOLDED or _FOLD.fullmatch(self.next)):
            self.at += 1


def _read_entry(page: _Page, number: int) -> Line:
    heading = _HEADING.fullmatch(page.take())
    if heading is None:
        raise invalid(page.at, "it isn't the heading of an entry", DAMAGED)
    if int(heading["number"]) != number:
        raise invalid(page.at, f"its number is {heading['number']} and {number} is due", DAMAGED)
    author = Author(Role(heading["role"]), name=clean_name(_unescape(heading["name"] or "")))
    at = _moment(heading["at"], page.at)
    parts: list[Part] = []
    page.skip_blank()
    while page.next is not None and not page.next.startswith("## "):
        parts.append(_read_part(page, page.next))
        check_parts((parts[-1],), number, page.at)
        page.skip_blank()
    return Line(number, number - 1 or None, author, tuple(parts), at)


def _read_part(page: _Page, first: str) -> Part:
    if first == f"{_FENCE}json":
        return _read_fence(page)
    label = _LABEL.fullmatch(first)
    if label is not None:
        page.take()
    quoted = []
    while page.next is not None and (page.next == ">" or page.next.startswith("> ")):
        quoted.append(_unquoted(page.take()))
    if not quoted:
        raise invalid(page.at + 1, "it is neither a heading, nor quoted, nor in a fence", DAMAGED)
    text = "\n".join(quoted)
    if label is None:
        return Text(text)
    return Notice(text) if label["upto"] is None else Summary(text, "", int(label["upto"]))


def _read_fence(page: _Page) -> Part:
    page.take()
    start = page.at
    inside = []
    while page.next != _FENCE:
        if page.next is None:
            raise invalid(start, "its fence is never closed", DAMAGED)
        inside.append(page.take())
    page.take()
    return decode(_folded, "\n".join(inside), start)
