"""Transcripts in the wire form of an API, and the times that a model is told."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.contracts.agents import Work
from segue.core.messages import Aside, File, Notice, Reasoning, Text, ToolCall, ToolResult
from segue.core.prompt.envelopes import Voices
from segue.core.prompt.times import TimeLines
from segue.core.prompt.wire import CUT_OFF
from segue.core.transcripts import AGENT, GATEWAY, Author, Draft, Entry, Role, Tip
from segue.core.values import SessionId

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC).timestamp()
ANN, BOB = (Author(Role.PERSON, f"p-{name}", name) for name in ("Ann", "Bob"))
SAID = [
    Draft(GATEWAY, (Aside("Ann is new."),)),
    Draft(ANN, (Text("Tea?"),), at=NOON),
    Draft(
        AGENT,
        (
            Reasoning("anthropic", {"thinking": "hm"}),
            Text("One moment."),
            ToolCall("c1", "kettle", {"cups": 2}),
            ToolCall("c2", "milk", {}),
            ToolResult("c1", {"hot": True}),
            Text("Here."),
            File("tea.png", "image/png", "x"),
        ),
    ),
    Draft(GATEWAY, (Notice("(Stopped.)"),), at=NOON + 1),
    Draft(BOB, (File("cat.jpg", "image/jpeg", "y", 7),), at=NOON + 3600),
]
JOURNAL = (ToolCall("c3", "cup", None), ToolResult("c3", "blue", failed=True))


def entries() -> list[Entry]:
    return [
        Entry(Tip(SessionId("s"), n), None, d.author, d.parts, NOON if d.at is None else d.at, n)
        for n, d in enumerate(SAID, 1)
    ]


def a_work(count: int) -> Work:
    """The work of a turn that asks the entry of this number."""
    asked = SAID[count - 1]
    return Work(SessionId("s"), count, "", entries()[: count - 1], (asked,), JOURNAL, Voices.SEVERAL, zone="Asia/Tokyo")


GIVEN = [
    {"role": "user", "content": '{"gateway":"It is Tuesday, 2026-11-17 21:00 (Asia/Tokyo)."}'},
    {"role": "user", "content": '{"gateway":"Ann is new."}'},
    {"role": "user", "content": "Tea?"},
]
STOPPED = [{"role": "user", "content": '{"gateway":"(Stopped.)"}'}]
LATER = [
    {"role": "user", "content": '{"gateway":"It is Tuesday, 2026-11-17 22:00 (Asia/Tokyo)."}'},
    {"role": "user", "content": '{"author":{"id":"p-Bob","name":"Bob"},"text":""}'},
    {"role": "user", "content": '{"file":"cat.jpg","media":"image/jpeg","bytes":7}'},
]


def test_chat_completions_get_words_calls_and_results_each_in_its_place() -> None:
    def called(id: str, name: str, arguments: str) -> dict[str, object]:
        return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}

    calls = [called("c1", "kettle", '{"cups":2}'), called("c2", "milk", "{}")]
    assert a_work(5).messages("openai") == [
        *GIVEN,
        {"role": "assistant", "content": "One moment.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": '{"hot":true}'},
        {"role": "tool", "tool_call_id": "c2", "content": CUT_OFF},
        {"role": "assistant", "content": "Here.\n\n(I sent the file tea.png.)"},
        *STOPPED,
        *LATER,
        {"role": "assistant", "content": None, "tool_calls": [called("c3", "cup", "null")]},
        {"role": "tool", "tool_call_id": "c3", "content": "blue"},
    ]


def test_anthropics_messages_get_the_same_as_blocks() -> None:
    def result(id: str, content: str, *, failed: bool) -> dict[str, object]:
        return {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": failed}

    assert a_work(5).messages("anthropic") == [
        *GIVEN,
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "One moment."},
                {"type": "tool_use", "id": "c1", "name": "kettle", "input": {"cups": 2}},
                {"type": "tool_use", "id": "c2", "name": "milk", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [result("c1", '{"hot":true}', failed=False), result("c2", CUT_OFF, failed=True)],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Here.\n\n(I sent the file tea.png.)"}]},
        *STOPPED,
        *LATER,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c3", "name": "cup", "input": {}}]},
        {"role": "user", "content": [result("c3", "blue", failed=True)]},
    ]


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_what_was_sent_once_is_sent_so_again(form: str) -> None:
    before = a_work(2).messages(form)[:-2]  # type: ignore[arg-type]
    assert a_work(5).messages(form)[: len(before)] == before  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="grammar"):
        a_work(2).messages("grammar")  # type: ignore[arg-type]


@given(st.lists(st.floats(0, 4e9), max_size=20), st.sampled_from(["UTC", "Europe/Lisbon", "Asia/Kolkata"]))
def test_a_time_is_told_at_first_and_then_only_when_the_last_is_old(times: list[float], zone: str) -> None:
    lines, told = TimeLines(zone), None
    for at in times:
        line = lines.before(at)
        if told is None or at >= told + 3600:
            assert line, "it was never told, or is old"
        if line:
            assert json.loads(line)["gateway"].endswith(f"({zone}).")
            told = at


def test_a_new_day_is_told_though_it_is_near() -> None:
    lines = TimeLines("Europe/Lisbon")
    late = datetime(2026, 11, 17, 23, 59, tzinfo=UTC).timestamp()
    assert [bool(lines.before(at)) for at in (late, late + 30, late + 90, late + 100, None)] == [
        True,
        False,
        True,
        False,
        False,
    ]
