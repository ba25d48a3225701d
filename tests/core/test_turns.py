"""Beginnings: a turn that looks back only as far as it needs comes to the same as one that looks at everything."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.handoffs import opening
from segue.core.messages import (
    Aside,
    ChildResult,
    Compress,
    DueWork,
    Notice,
    Opening,
    Order,
    Part,
    Parting,
    Retry,
    Rewind,
    Sent,
    Text,
    Undo,
)
from segue.core.schedules import ONCE, asked
from segue.core.transcripts import Author, Draft, Entry, Path, Role, Tip
from segue.core.turns import Claim, Run, Turn, TurnKind, begin, draft_of, far_enough, order_of
from segue.core.values import SessionId
from tests.core.test_transcripts import said

SESSION = SessionId("s")


def a_run(kind: TurnKind, order: Part, path: Sequence[Entry]) -> Run:
    turn = Turn(SESSION, 99, kind, None, "", "ann", "Ann", "", "", (order,), 0.0, "")
    return Run(Claim(SESSION, "me", 1), (turn,), path[-1].tip if path else None)


@st.composite
def paths(draw: st.DrawFn) -> list[Entry]:
    """What several people, the agent and the gateway said, with forks and summaries."""
    words: list[str] = []
    entries = 0
    for turn in range(1, draw(st.integers(1, 12)) + 1):
        for word in draw(st.lists(st.sampled_from(["p", "q", "a", "g", "S", "|"]), min_size=1, max_size=4)):
            if word == "|":
                words += [word] if entries and words[-1] != "|" and words.count("|") < 5 else []
                continue
            number = draw(st.integers(1, entries)) if word == "S" and entries else turn
            words.append(("g" if word == "S" and not entries else word) + str(number))
            entries += 1
    return said(" ".join(words))


@given(paths(), st.sampled_from(["undo", "retry", "rewind"]), st.data())
def test_as_far_back_as_is_enough_is_as_good_as_all(path: list[Entry], name: str, data: st.DataObject) -> None:
    kind = TurnKind(name)
    order: Order = Retry()
    if kind is TurnKind.UNDO:
        order = Undo(data.draw(st.sampled_from([0, 1, 2, 5])))
    elif kind is TurnKind.REWIND:
        to = data.draw(st.sampled_from([*(entry.tip for entry in path), Tip(SessionId("elsewhere"), 1)]))
        order = Rewind(to.session, to.n)
    run = a_run(kind, order, path)
    enough = far_enough(run.turns[0])
    assert enough is not None
    whole = begin(run, Path(path))
    for start in range(len(path) - 1, -1, -1):
        if start == 0 or enough(path[start:]):
            short = begin(run, Path(path[start:]))
            assert (short.onto, short.asked, short.notice) == (whole.onto, whole.asked, whole.notice)
            if kind is TurnKind.RETRY:
                # The agent is sent exactly what it would be sent of the whole.
                assert list(short.path.visible) == list(whole.path.visible)


def test_what_an_order_says_counts_only_in_a_turn_of_its_kind() -> None:
    path = Path(said("p1 a1 p2 a2"))
    assert begin(a_run(TurnKind.ARRIVAL, Undo(2), path), path).onto is None
    undone = begin(a_run(TurnKind.UNDO, Undo(2), path), path)
    assert undone.notice == "Took back the last 2 exchanges."
    # One that waited before orders were kept as they are takes back what its kind alone says.
    assert begin(a_run(TurnKind.UNDO, Retry(), path), path).notice == "Took back the last exchange."


def a_turn(kind: TurnKind, part: Part) -> Turn:
    return a_run(kind, part, []).turns[0]


@pytest.mark.parametrize(
    ("kind", "text", "order"),
    [
        (TurnKind.UNDO, "", Undo()),
        (TurnKind.UNDO, "3", Undo(3)),
        (TurnKind.REWIND, "s1/7", Rewind("s1", 7)),
        (TurnKind.COMPRESS, "the plan", Compress("the plan")),
        (TurnKind.RETRY, "", Retry()),
    ],
)
def test_an_order_that_waits_since_it_was_written_as_text_keeps_its_meaning(
    kind: TurnKind, text: str, order: Order
) -> None:
    assert order_of(a_turn(kind, Text(text))) == order
    assert order_of(a_turn(kind, order)) == order


@pytest.mark.parametrize(
    ("kind", "part", "told"),
    [
        (TurnKind.OPENING, Opening("the terminal", "Telegram"), Aside(opening("the terminal", "Telegram"))),
        (TurnKind.OPENING, Text("Speak first."), Aside("Speak first.")),
        (TurnKind.ENDING, Parting("Save it."), Aside("Save it.")),
        (TurnKind.SENT, Sent("Look."), Text("Look.")),
        (TurnKind.SENT, Sent("Look.", "s2", "scout"), Text("From another session, “scout” (s2):\n\nLook.")),
        (TurnKind.SENT, Sent("Look.", "s2", child=True), Text("From your child session s2:\n\nLook.")),
        (TurnKind.RESULT, ChildResult("42", "s2", ""), Text("From your child session s2:\n\n42")),
        (TurnKind.RESULT, Text("42"), Text("42")),
        (
            TurnKind.SCHEDULED,
            DueWork("water", ONCE, "UTC", 60.0, 60.0),
            Notice(asked("water", ONCE, "UTC", 60.0, 60.0, 0)),
        ),
    ],
)
def test_a_turn_that_nobodys_message_began_is_told_in_words(kind: TurnKind, part: Part, told: Part) -> None:
    sender = {Sent: "sender", ChildResult: "session"}.get(type(part), "")
    name = getattr(part, "label", "") or getattr(part, sender, "")
    assert draft_of(a_turn(kind, part)) == Draft(Author(Role.GATEWAY, name=name), (told,), at=0.0)
