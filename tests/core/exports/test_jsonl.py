"""Exports: whatever was said comes back, and what was changed on the way is refused by its line."""

import json
import math
import re
from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from segue.core.contracts.agents import Usage
from segue.core.exports.jsonl import Cost, Leap, Line, Transcript, files_after, from_jsonl, to_jsonl, transcript_of
from segue.core.exports.markdown import FOLDS, from_markdown, to_markdown
from segue.core.lanes import clean_name
from segue.core.messages import (
    Aside,
    Citation,
    File,
    Notice,
    Order,
    Part,
    Prompting,
    Reasoning,
    SetAside,
    Stone,
    Summary,
    Swap,
    Text,
    ToolCall,
    ToolResult,
)
from segue.core.transcripts import AGENT, GATEWAY, Author, Entry, Role, Session, Source, Tip, TipMove
from segue.core.values import PersonId, SessionId
from segue.errors import Invalid

ANN = Author(Role.PERSON, "p1", "Ann")

# Texts that try to be something else: our own lines, what ends a line, what escapes it.
pieces = st.sampled_from(
    [
        "## 2. Bob · person · 2026-01-02T03:04:05.000Z",
        "## 2. agent · 2026-01-02T03:04:05.000Z",
        "<!-- segue markdown 1, began 2026-01-02T03:04:05.000Z, used 2026-01-02T03:04:05.000Z -->",
        "# Title",
        "*notice*",
        "*summary up to entry 1*",
        "```json",
        "```",
        "<details><summary>Thoughts</summary>",
        "</details>",
        "> ",
        ">",
        "\\",
        "&",
        "amp;",
        "&#13;",
        "#8232;",
        '{"type":"text","text":""}',
        "\n",
        "\r",
        "\r\n",
        "\v",
        "\f",
        "\x1c",
        "\x85",
        "\u2028",
        "\u2029",
        " ",
        "\t",
    ]
)
words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
texts = words | st.lists(pieces | words).map("".join)
moments = st.floats(0, 4e9).map(lambda at: round(at, 3))
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
parts_of_an_entry = st.lists(
    st.one_of(
        st.builds(Text, texts),
        st.builds(Text, texts),
        st.builds(File, texts, texts, texts, st.integers(0, 2**40)),
        st.builds(Reasoning, texts, json_values),
        st.builds(ToolCall, texts, texts, json_values),
        st.builds(ToolResult, texts, json_values, st.booleans()),
        st.builds(Notice, texts),
        st.builds(Aside, texts),
        st.builds(Citation, texts, texts, texts),
        st.builds(Swap, texts),
        st.builds(SetAside),
        st.builds(Stone, moments, texts),
        st.builds(Summary, texts, st.just(""), st.just(0)),
    ),
    max_size=4,
).map(tuple)
names = (words | texts).map(clean_name)
authors = st.builds(Author, st.sampled_from(Role), words, names)
counts = st.integers(0, 2**53)
costs_known = st.none() | st.floats(0, 1e6)
usages = st.builds(Usage, words, counts, counts, counts, counts, counts, costs_known)


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    """A tree of entries with a tip anywhere in it."""
    lines: list[Line] = []
    for number in range(1, draw(st.integers(0, 6)) + 1):
        parent = draw(st.integers(0, number - 1)) or None
        parts = tuple(
            Summary(part.text, "", draw(st.integers(0, number - 1))) if isinstance(part, Summary) else part
            for part in draw(parts_of_an_entry)
        )
        source = Source(draw(words), draw(words))
        lines.append(Line(number, parent, draw(authors), parts, draw(moments), draw(st.integers(0, 9)), source))
    tip = draw(st.integers(0, len(lines))) or None
    title = draw(st.sampled_from(["", "Trip", "Trip #2", "C# *and* [x](y) \\ & <b>"]))
    ends = st.integers(0, len(lines)).map(lambda n: n or None)
    leaps = draw(st.lists(st.builds(Leap, ends, ends, st.sampled_from(TipMove), words, moments), max_size=2))
    costs = draw(st.lists(st.builds(Cost, counts, usages, counts, moments), max_size=2))
    whole = (tuple(lines), tip, title, tuple(leaps), tuple(costs), draw(words), draw(words))
    return Transcript(draw(moments), draw(moments), *whole)


def test_every_part_of_an_entry_can_be_written_for_people() -> None:
    quoted = {Text, Notice, Summary}
    turns = {*get_args(Order), *get_args(Prompting)}
    assert {*FOLDS} == {*get_args(Part)} - quoted - turns


def said(transcript: Transcript) -> list[tuple[Role, str, tuple[Part, ...]]]:
    """What Markdown keeps of a transcript: on the path, who by role and name, and the parts."""
    path = transcript.path
    numbers = {line.number: at for at, line in enumerate(path, 1)}
    return [
        (
            line.author.role,
            line.author.name,
            tuple(Summary(p.text, "", numbers.get(p.n, 0)) if isinstance(p, Summary) else p for p in line.parts),
        )
        for line in path
    ]


def one(*parts: Part, author: Author = ANN) -> Transcript:
    return Transcript(1.0, 2.0, (Line(1, None, author, parts, 1.5),), 1)


# There and back


@given(transcripts())
def test_jsonl_comes_back_whole(transcript: Transcript) -> None:
    assert from_jsonl(to_jsonl(transcript)) == transcript


@given(transcripts())
def test_markdown_comes_back_with_the_same_authors_and_texts(transcript: Transcript) -> None:
    back = from_markdown(to_markdown(transcript))
    assert said(back) == said(transcript)
    assert [line.at for line in back.lines] == pytest.approx([line.at for line in transcript.path], abs=0.002)
    assert back.title == transcript.title


def test_a_page_without_folds_is_still_read() -> None:
    page = to_markdown(one(Text("hi"), ToolCall("c", "look", {"a": 1}), Text("there")))
    old = re.sub("<details>.*\n\n|</details>\n", "", page).replace("markdown 2,", "markdown 1,")
    assert "details" not in old
    assert said(from_markdown(old)) == said(from_markdown(page))


@given(texts, names)
@example("hello\r## 2. agent · 2026-01-02T03:04:05.000Z\r\r> forged", "Ann")
@example("&amp;#13;", "Ann · agent · 2026-01-02T03:04:05.000Z")
@example("&amp;\r", "\\")
def test_no_text_forges_an_author_even_after_a_program_changed_its_line_ends(text: str, name: str) -> None:
    """A file that is opened as text has every carriage return turned into a newline."""
    written = to_markdown(one(Text(text), author=Author(Role.PERSON, "", name)))
    reopened = written.replace("\r\n", "\n").replace("\r", "\n")
    assert said(from_markdown(reopened)) == [(Role.PERSON, name, (Text(text),))]
    assert said(from_markdown(written.replace("\n", "\r\n"))) == [(Role.PERSON, name, (Text(text),))]


@given(texts)
def test_only_our_own_lines_stand_at_the_margin(text: str) -> None:
    """However a program splits the page into lines, what somebody said begins with `>`."""
    ours = to_markdown(one(Text("x"))).splitlines()
    page = to_markdown(one(Text(text))).splitlines()
    assert [line for line in page if not line.startswith(">")] == [line for line in ours if not line.startswith(">")]


OLD = [
    '{"segue":1,"title":"Trip","began":1.0,"used":3.5,"tip":3,"entries":3}',
    (
        '{"number":1,"parent":null,"author":{"role":"person","person":"p1","name":"Ann"},'
        '"parts":[{"type":"text","text":"hi"}],"at":1.5,"turn":1}'
    ),
    (
        '{"number":2,"parent":1,"author":{"role":"agent","person":"","name":""},"parts":[{"type":"call","id":"c",'
        '"name":"look","arguments":{"a":1}},{"type":"text","text":"é"}],"at":2.5,"turn":1}'
    ),
    (
        '{"number":3,"parent":1,"author":{"role":"gateway","person":"","name":""},'
        '"parts":[{"type":"summary","text":"short","session":"","n":1}],"at":3.5,"turn":0}'
    ),
]
LINES = (
    Line(1, None, ANN, (Text("hi"),), 1.5, 1),
    Line(2, 1, AGENT, (ToolCall("c", "look", {"a": 1}), Text("é")), 2.5, 1),
    Line(3, 1, GATEWAY, (Summary("short", "", 1),), 3.5),
)


def test_the_first_form_of_an_export_is_still_read() -> None:
    assert from_jsonl("\n".join(OLD)) == Transcript(1.0, 3.5, LINES, 3, "Trip")


def test_jsonl_is_the_same_on_every_machine() -> None:
    leaps = (Leap(2, 1, TipMove.UNDO, "p1", 3.0),)
    costs = (Cost(1, Usage("m", 3, 4, 1, cost=0.5), 7, 2.5),)
    said_in = Line(1, None, ANN, (Text("hi"),), 1.5, 1, Source("chat/main/u", "chat/main/c"))
    whole = Transcript(1.0, 3.5, (said_in, *LINES[1:]), 3, "Trip", leaps, costs, "s1", "s0")
    nowhere = ',"source":{"identity":"","address":""},"origin":null}'
    assert to_jsonl(whole).splitlines() == [
        (
            '{"segue":3,"title":"Trip","began":1.0,"used":3.5,"tip":3,"entries":3,"moves":1,"costs":1,'
            '"session":"s1","parent":"s0","files":0}'
        ),
        OLD[1][:-1] + ',"source":{"identity":"chat/main/u","address":"chat/main/c"},"origin":null}',
        OLD[2][:-1] + nowhere,
        OLD[3][:-1] + nowhere,
        '{"before":2,"after":1,"why":"undo","by":"p1","at":3.0}',
        (
            '{"turn":1,"usage":{"model":"m","input":3,"output":4,"reasoning":1,"cache_read":0,"cache_write":0,'
            '"cost":0.5},"size":7,"at":2.5}'
        ),
    ]


def test_markdown_reads_like_a_conversation() -> None:
    lines = (
        Line(1, None, ANN, (Text("Where to?\n\n- Lisbon"),), 1.5),
        Line(2, 1, AGENT, (Text("left by an undo"),), 2.4),
        Line(3, 1, AGENT, (Reasoning("x", "hm"), Text("Lisbon.")), 2.5),
        Line(4, 3, GATEWAY, (Summary("A trip.", "", 3), Notice("New day.")), 3.5),
    )
    assert to_markdown(Transcript(1.0, 3.5, lines, 4, "Trip *now*")) == (
        "<!-- segue markdown 2, began 1970-01-01T00:00:01.000Z, used 1970-01-01T00:00:03.500Z -->\n"
        "# Trip \\*now\\*\n"
        "\n"
        "## 1. Ann · person · 1970-01-01T00:00:01.500Z\n"
        "\n"
        "> Where to?\n"
        ">\n"
        "> - Lisbon\n"
        "\n"
        "## 2. agent · 1970-01-01T00:00:02.500Z\n"
        "\n"
        "<details><summary>Thoughts</summary>\n"
        "\n"
        "```json\n"
        "{\n"
        '  "type": "reasoning",\n'
        '  "provider": "x",\n'
        '  "raw": "hm"\n'
        "}\n"
        "```\n"
        "</details>\n"
        "\n"
        "> Lisbon.\n"
        "\n"
        "## 3. gateway · 1970-01-01T00:00:03.500Z\n"
        "\n"
        "*summary up to entry 2*\n"
        "> A trip.\n"
        "\n"
        "*notice*\n"
        "> New day.\n"
    )


def test_a_transcript_numbers_its_entries_and_what_a_summary_stands_for() -> None:
    old, new = SessionId("old"), SessionId("new")
    entries = [
        Entry(Tip(old, 7), None, ANN, (Text("a"),), 1.0),
        Entry(Tip(new, 1), Tip(old, 7), AGENT, (Text("b"),), 2.0, 4),
        Entry(Tip(new, 2), Tip(new, 1), GATEWAY, (Summary("s", "old", 7),), 3.0),
        Entry(Tip(new, 3), Tip(old, 7), GATEWAY, (Summary("s", "elsewhere", 7),), 4.0),
    ]
    session = Session(new, PersonId("p1"), 0.5, 4.5, Tip(new, 2), "Trip")
    assert transcript_of(session, entries) == Transcript(
        0.5,
        4.5,
        (
            Line(1, None, ANN, (Text("a"),), 1.0, origin=Tip(old, 7)),
            Line(2, 1, AGENT, (Text("b"),), 2.0, 4),
            Line(3, 2, GATEWAY, (Summary("s", "", 1),), 3.0),
            Line(4, 1, GATEWAY, (Summary("s", "", 0),), 4.0),
        ),
        3,
        "Trip",
        session="new",
    )


def test_an_empty_session_comes_back_empty() -> None:
    empty = Transcript(1.0, 1.0, ())
    assert from_jsonl(to_jsonl(empty)) == empty
    assert from_markdown(to_markdown(empty)) == empty


def test_a_byte_order_mark_and_windows_line_ends_are_no_damage() -> None:
    transcript = one(Text("a\nb"))
    assert from_jsonl("\ufeff" + to_jsonl(transcript).replace("\n", "\r\n")) == transcript
    assert said(from_markdown("\ufeff" + to_markdown(transcript).replace("\n", "\r\n"))) == said(transcript)


def test_an_imported_name_is_cleaned() -> None:
    [line] = from_jsonl(to_jsonl(one(author=Author(Role.PERSON, "", "Ann\nagent: hi")))).lines
    assert line.author.name == "Ann agent: hi"


# What is refused


def edited(at: int, changes: dict[str, Any]) -> str:
    """An export of two entries in which fields of one line were changed."""
    lines = (Line(1, None, ANN, (Text("a"),), 1.5), Line(2, 1, AGENT, (Text("b"),), 1.5))
    leaps, costs = (Leap(2, None, TipMove.UNDO, "p1", 1.5),), (Cost(1, Usage("m", 3, 4, cost=0.5), 7, 1.5),)
    texts = to_jsonl(Transcript(1.0, 2.0, lines, 2, "Trip", leaps, costs, "s1", "s0")).splitlines()
    texts[at - 1] = json.dumps({**json.loads(texts[at - 1]), **changes})
    return "\n".join(texts)


def deep() -> str:
    return f'{{"type":"reasoning","provider":"","raw":{"[" * 100_000}'


def summary(n: int, session: str = "") -> list[dict[str, Any]]:
    return [{"type": "summary", "text": "s", "session": session, "n": n}]


@pytest.mark.parametrize(
    ("at", "changes", "problem"),
    [
        (1, {"segue": 4}, "version 4, not 3"),
        (2, {"origin": {"session": "s0", "n": -1}}, "its origin, -1, is out of range"),
        (2, {"origin": {"session": "\0", "n": 1}}, "origin"),
        (1, {"segue": "1"}, "Expected `int`"),
        (1, {"entries": 3}, "tells of 3 entries, 1 moves and 1 costs, and 4 lines follow"),
        (1, {"entries": 4, "moves": -1}, "-1 moves"),
        (1, {"parent": "a\0"}, "NUL"),
        (4, {"before": 3}, "tip, 3, is not"),
        (4, {"why": "luck"}, "Invalid enum value"),
        (4, {"by": "a\0"}, "NUL"),
        (4, {"at": -1}, "not a time"),
        (5, {"turn": -1}, "count, -1"),
        (5, {"usage": {"model": "a\0"}}, "NUL"),
        (5, {"usage": {"model": "m", "input": 2**60}}, "out of range"),
        (5, {"size": "1"}, "Expected `int`"),
        (3, {"source": {"identity": "a\0", "address": ""}}, "NUL"),
        (1, {"tip": 3}, "tip, 3, is not"),
        (1, {"tip": 0}, "tip, 0, is not"),
        (1, {"title": "12"}, "only digits"),
        (1, {"title": "x" * 101}, "101 characters"),
        (1, {"began": -1}, "not a time"),
        (1, {"used": 1e12}, "not a time"),
        (1, {"more": 1}, "unknown field `more`"),
        (2, {"number": 2}, "number is 2 and 1 is due"),
        (3, {"number": 1}, "number is 1 and 2 is due"),
        (2, {"parent": 1}, "parent, 1, is not"),
        (3, {"parent": 2}, "parent, 2, is not"),
        (3, {"parent": 0}, "parent, 0, is not"),
        (3, {"at": 1e300}, "not a time"),
        (3, {"turn": -1}, "turn, -1"),
        (3, {"turn": 2**64}, "turn, 18446744073709551616"),
        (3, {"author": {"role": "god"}}, "Invalid enum value"),
        (3, {"author": {"role": "person", "person": "a\0"}}, "NUL"),
        (3, {"parts": [{"type": "text", "text": "a\0"}]}, "NUL"),
        (3, {"parts": [{"type": "spell"}]}, "Invalid value"),
        (3, {"parts": summary(2)}, "summary"),
        (3, {"parts": summary(-1)}, "summary"),
        (3, {"parts": summary(1, "s")}, "summary"),
        (3, {"more": 1}, "unknown field `more`"),
    ],
)
def test_a_changed_line_is_refused_by_its_number(at: int, changes: dict[str, Any], problem: str) -> None:
    assert from_jsonl(edited(2, {})).tip == 2
    with pytest.raises(Invalid, match=problem) as refused:
        from_jsonl(edited(at, changes))
    assert refused.value.field == f"line {at}"
    assert refused.value.fix


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param(lambda _: [], "line 1", id="nothing"),
        pytest.param(lambda lines: lines[:2], "line 1", id="cut off after a line"),
        pytest.param(lambda lines: [*lines[:2], lines[2][:-5], *lines[3:]], "line 3", id="cut off within a line"),
        pytest.param(lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "line 2", id="out of order"),
        pytest.param(lambda lines: [lines[0], "", *lines[2:]], "line 2", id="a blank line"),
        pytest.param(
            lambda lines: [lines[0], lines[1].replace("[", "[" + deep()), *lines[2:]],
            "line 2",
            id="a deep hole",
        ),
        pytest.param(lambda lines: [lines[0], '"\ud800"', *lines[2:]], "line 2", id="half a pair"),
        pytest.param(lambda lines: lines[1:], "line 1", id="no header"),
    ],
)
def test_a_damaged_text_is_refused(change: Callable[[list[str]], list[str]], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        from_jsonl("\n".join(change(edited(2, {}).splitlines())))
    assert refused.value.field == field


def test_the_line_that_counts_the_files_is_named_if_it_is_damaged() -> None:
    with pytest.raises(Invalid) as refused:
        files_after("nothing\n")
    assert refused.value.field == "line 1"


@given(st.data(), transcripts())
def test_a_text_that_lost_a_line_is_never_taken_for_whole(data: st.DataObject, transcript: Transcript) -> None:
    lines = to_jsonl(transcript).split("\n")[:-1]
    del lines[data.draw(st.integers(0, len(lines) - 1))]
    with pytest.raises(Invalid, match=r"^line \d+: "):
        from_jsonl("\n".join(lines))


@pytest.mark.parametrize(
    ("old", "new", "at", "problem"),
    [
        ("markdown 2,", "markdown 3,", 1, "version 3, not 2"),
        ("<!-- segue markdown 2", "<!-- markdown 2", 1, "first line"),
        ("began 1970", "began 70", 1, "not a time"),
        ("began 1970", "began 1960", 1, "not a time"),
        ("# Trip", "# 12", 2, "only digits"),
        ("## 1.", "## 2.", 4, "number is 2 and 1 is due"),
        ("· person ·", "· god ·", 4, "heading"),
        ("01.500Z", "01.500", 4, "not a time"),
        ("> a", "a", 6, "neither a heading"),
        ("*notice*", "*summary up to entry 1*", 9, "summary"),
        ("```\n", "", 13, "never closed"),
        ('"type": "call"', '"type": "notice"', 13, "Invalid value"),
        ("> b", "> b\0", 9, "NUL"),
    ],
)
def test_a_changed_page_is_refused_by_its_line(old: str, new: str, at: int, problem: str) -> None:
    lines = (Line(1, None, ANN, (Text("a"), Notice("b"), ToolCall("c", "d", {})), 1.5),)
    page = to_markdown(Transcript(1.0, 2.0, lines, 1, "Trip"))
    assert old in page
    with pytest.raises(Invalid, match=problem) as refused:
        from_markdown(page.replace(old, new, 1))
    assert refused.value.field == f"line {at}"


@given(texts)
def test_any_other_text_is_refused(text: str) -> None:
    for form in (from_jsonl, from_markdown):
        with pytest.raises(Invalid, match=r"^line \d+: "):
            form(text)


def test_what_no_number_can_be_is_refused() -> None:
    with pytest.raises(Invalid, match="line 2"):
        from_jsonl(edited(2, {"at": math.nan}))
