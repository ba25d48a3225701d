"""Beginnings: a turn that looks back only as far as it needs comes to the same as one that looks at everything."""

from hypothesis import given
from hypothesis import strategies as st

from segue.changes.exchange.beginnings import begin, far_enough
from segue.core.messages import Text
from segue.core.transcripts import Entry, Tip, visible
from segue.core.turns import Claim, Run, Turn, TurnKind
from segue.core.values import SessionId
from tests.core.test_transcripts import said

SESSION = SessionId("s")


def a_run(kind: TurnKind, words: str, path: list[Entry]) -> Run:
    turn = Turn(SESSION, 99, kind, None, "", "ann", "Ann", "", "", (Text(words),), 0.0, "")
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
    words = ""
    if kind is TurnKind.UNDO:
        words = data.draw(st.sampled_from(["", "1", "2", "5", "nonsense"]))
    elif kind is TurnKind.REWIND:
        to = data.draw(st.sampled_from([*(entry.tip for entry in path), Tip(SessionId("elsewhere"), 1)]))
        words = f"{to.session}/{to.n}"
    run = a_run(kind, words, path)
    enough = far_enough(run.turns[0])
    assert enough is not None
    whole = begin(run, path)
    for start in range(len(path) - 1, -1, -1):
        if start == 0 or enough(path[start:]):
            short = begin(run, path[start:])
            assert (short.onto, short.asked, short.notice) == (whole.onto, whole.asked, whole.notice)
            if kind is TurnKind.RETRY:
                # The agent is sent exactly what it would be sent of the whole.
                assert visible(short.path) == visible(whole.path)
