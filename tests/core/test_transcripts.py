"""Transcripts: what a model sees of a path, and where undo and retry put the tip."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.messages import Part, SetAside, Summary, Text
from segue.core.transcripts import (
    AGENT,
    GATEWAY,
    Author,
    Entry,
    Path,
    Role,
    Tip,
    before_answer,
    before_exchange,
    exchanges,
    visible,
)
from segue.core.values import SessionId
from segue.errors import Refusal, Refused

AUTHORS = {"p": Author(Role.PERSON, "ann", "Ann"), "q": Author(Role.PERSON, "bob", "Bob"), "a": AGENT, "g": GATEWAY}


def said(line: str) -> list[Entry]:
    """A path, from `p1 a1 | p1 S2`: who spoke in which turn, `|` where a fork began, `S2` a summary up to entry 2.

    `X3` sets aside what was asked in turn 3.
    """
    path: list[Entry] = []
    sessions = iter("stuvwxyz")
    session, n = SessionId(next(sessions)), 0
    for word in line.split():
        if word == "|":
            session, n = SessionId(next(sessions)), 0
            continue
        n += 1
        parent = path[-1].tip if path else None
        part: Part = Text(word)
        author = AUTHORS.get(word[0], GATEWAY)
        if word[0] == "S":
            covered = path[int(word[1:]) - 1].tip if int(word[1:]) <= len(path) else Tip(SessionId("elsewhere"), 1)
            part = Summary("in short", covered.session, covered.n)
        if word[0] == "X":
            part = SetAside()
        turn = int(word[1:]) if author.role is not Role.GATEWAY or word[0] == "X" else 0
        path.append(Entry(Tip(session, n), parent, author, (part,), at=0.0, turn=turn))
    return path


def numbers(path: Sequence[Entry], some: Sequence[Entry]) -> list[int]:
    """Which entries of a path these are, counted from 1."""
    return [path.index(entry) + 1 for entry in some]


# What a model sees


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        pytest.param("", [], id="nothing said"),
        pytest.param("p1 a1 p2 a2", [1, 2, 3, 4], id="no summary: all"),
        pytest.param("p1 a1 p2 a2 S4", [5], id="a summary of all"),
        pytest.param("p1 a1 p2 a2 S4 p3 a3", [5, 6, 7], id="and what was said since"),
        pytest.param("p1 a1 p2 a2 S2", [5, 3, 4], id="what it doesn't stand for comes after it"),
        pytest.param("p1 a1 p2 a2 S2 p3", [5, 3, 4, 6], id="then what was said since"),
        pytest.param("p1 a1 S2 p2 a2 S5 p3", [6, 7], id="the newest summary stands for an older one"),
        pytest.param("p1 a1 S2 p2 a2 S2 p3", [6, 3, 4, 5, 7], id="unless it was made without it"),
        pytest.param("p1 a1 | p1 a1 S2 p2", [5, 3, 4, 6], id="it stands for what a parent session said"),
        pytest.param("p1 a1 S99 p2", [3, 1, 2, 4], id="a summary of something else loses nothing"),
        pytest.param("S1", [1], id="a summary of itself"),
        pytest.param("p1 a1 p2 p2 X2 p3 a3", [1, 2, 5, 6, 7], id="what was set aside is gone for it"),
        pytest.param("p1 q2 X2 p3", [1, 3, 4], id="and nothing before its turn"),
        pytest.param("p1 a1 S2 p2 X2 p3 X3", [3, 5, 7], id="after a summary too"),
    ],
)
def test_what_a_model_sees_of_a_path(line: str, seen: list[int]) -> None:
    path = said(line)
    assert numbers(path, visible(path)) == seen
    grown = Path()
    for entry in path:
        turn = [one for one in path if one.turn == entry.turn != 0] if entry.turn else [entry]
        if entry is turn[-1]:
            grown = Path(turn, grown)
    assert seen == numbers(path, list(grown.visible)), "also when it is made turn by turn"


@pytest.mark.parametrize("author", [AUTHORS["p"], AGENT])
def test_only_the_gateway_sums_up(author: Author) -> None:
    path = said("p1 a1 p2")
    forged = Entry(Tip(SessionId("s"), 4), path[-1].tip, author, (Summary("nothing", SessionId("s"), 3),), at=0.0)
    assert visible([*path, forged]) == [*path, forged]


# Exchanges


@pytest.mark.parametrize(
    ("line", "begin"),
    [
        pytest.param("", [], id="nothing said"),
        pytest.param("p1", [1], id="a question"),
        pytest.param("p1 a1 a1 p2 a2", [1, 4], id="two turns"),
        pytest.param("p1 p1 a1", [1], id="two messages in one turn"),
        pytest.param("p1 p2 a2", [1, 2], id="a turn that was never answered"),
        pytest.param("p1 q2 a2", [1, 2], id="two people, a turn each"),
        pytest.param("p1 a1 p1 a1", [1, 3], id="a message that steered the running turn"),
        pytest.param("p1 g p1 a1", [1, 3], id="a notice between"),
        pytest.param("g a1 p2 a2", [3], id="an opening is nobody's question"),
        pytest.param("a1 g", [], id="nobody asked"),
        pytest.param("p0 p0 a0 p0 a0", [1, 4], id="imported: no turns, but roles"),
        pytest.param("p1 | p1 a1", [1, 2], id="the first turn after a fork has the number of one before it"),
        pytest.param("p1 a1 | p1 a1", [1, 3], id="a fork"),
    ],
)
def test_where_exchanges_begin(line: str, begin: list[int]) -> None:
    assert [start + 1 for start in exchanges(said(line))] == begin


@pytest.mark.parametrize(
    ("line", "count", "tip"),
    [
        pytest.param("p1 a1 p2 a2", 1, 2, id="the last exchange"),
        pytest.param("p1 a1 p2 a2", 2, 0, id="all of them"),
        pytest.param("p1 a1 p2 a2 g", 1, 2, id="a notice goes with it"),
        pytest.param("p1 a1 p2 p2 a2 a2", 1, 2, id="all of a turn"),
        pytest.param("p1 a1 p2", 1, 2, id="an unanswered question"),
        pytest.param("p1 a1 S2 p2 a2", 1, 3, id="back to a summary"),
        pytest.param("p1 a1 S2", 1, 0, id="back before a summary"),
        pytest.param("p1 a1 | p1 a1", 2, 0, id="back before the fork"),
        pytest.param("g a1 p2 a2", 1, 2, id="back to an opening"),
    ],
)
def test_undo_puts_the_tip_before_so_many_exchanges(line: str, count: int, tip: int) -> None:
    path = said(line)
    assert before_exchange(path, count) == (path[tip - 1].tip if tip else None)


@pytest.mark.parametrize(("line", "count"), [("", 1), ("g a1", 1), ("p1 a1", 2), ("p1 a1", 0), ("p1 a1", -1)])
def test_undo_of_what_was_never_said_is_refused(line: str, count: int) -> None:
    with pytest.raises(Refused) as refused:
        before_exchange(said(line), count)
    assert refused.value.why is Refusal.NOTHING_TO_UNDO


@pytest.mark.parametrize(
    ("line", "tip", "asked"),
    [
        pytest.param("p1 a1", 0, [1], id="the first question"),
        pytest.param("p1 a1 p2 a2", 2, [3], id="the last question"),
        pytest.param("p1 a1 p2 p2 a2 a2 g", 2, [3, 4], id="all that was asked in the turn"),
        pytest.param("p1 a1 p2", 2, [3], id="unanswered"),
        pytest.param("p1 q2 a2", 1, [2], id="only the last one's"),
        pytest.param("p1 | p1 a1", 1, [2], id="only this session's"),
    ],
)
def test_retry_asks_the_last_exchange_again(line: str, tip: int, asked: list[int]) -> None:
    path = said(line)
    before, again = before_answer(path)
    assert before == (path[tip - 1].tip if tip else None)
    assert numbers(path, again) == asked


@pytest.mark.parametrize("line", ["", "a1", "g a1 g"])
def test_retry_of_nothing_is_refused(line: str) -> None:
    with pytest.raises(Refused) as refused:
        before_answer(said(line))
    assert refused.value.why is Refusal.NOTHING_TO_RETRY


# Whatever was said


words = st.sampled_from(["p", "q", "a"]).flatmap(lambda who: st.integers(0, 3).map(lambda turn: f"{who}{turn}"))
summaries = st.integers(1, 12).map(lambda n: f"S{n}")
paths = st.lists(words | summaries | st.sampled_from(["g", "|"]), max_size=7).map(" ".join).map(said)
longer = st.lists(words | summaries | st.just("g"), max_size=30).map(" ".join).map(said)
any_path = paths | longer


def covered_by(path: Sequence[Entry], summary: Entry) -> int:
    """How many entries of the path a summary stands for."""
    part = summary.parts[0]
    assert isinstance(part, Summary)
    found = [i + 1 for i, entry in enumerate(path) if entry.tip == Tip(SessionId(part.session), part.n)]
    return found[0] if found and found[0] <= path.index(summary) else 0


@given(any_path)
def test_visible_keeps_the_order_and_loses_only_what_the_newest_summary_covers(path: list[Entry]) -> None:
    shown = visible(path)
    newest = next((entry for entry in reversed(path) if isinstance(entry.parts[0], Summary)), None)
    if newest is None:
        assert shown == path
        return
    assert shown[0] == newest
    assert shown[1:] == [entry for entry in path[covered_by(path, newest) :] if entry != newest]


@given(any_path, st.integers(1, 5))
def test_undo_leaves_so_many_exchanges_fewer_and_is_one_undo_after_another(path: list[Entry], count: int) -> None:
    begin = exchanges(path)
    if count > len(begin):
        return
    left = path[: begin[-count]]
    assert before_exchange(path, count) == (left[-1].tip if left else None)
    assert exchanges(left) == begin[:-count]


@given(any_path)
def test_a_retry_takes_back_one_exchange_and_asks_only_what_people_said_in_it(path: list[Entry]) -> None:
    if not exchanges(path):
        return
    tip, asked = before_answer(path)
    assert tip == before_exchange(path, 1)
    first = path.index(asked[0])
    assert asked == path[first : first + len(asked)]
    assert {entry.author.role for entry in asked} == {Role.PERSON}
    assert not path[first + len(asked) :] or path[first + len(asked)].author.role is not Role.PERSON


@pytest.mark.parametrize("read", [visible, exchanges, before_answer])
def test_reading_a_path_changes_nothing(read: Callable[[list[Entry]], object]) -> None:
    path = said("p1 a1 p2 S2 a2 p3")
    read(path)
    assert path == said("p1 a1 p2 S2 a2 p3")
