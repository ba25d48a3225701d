"""Messages: parts come back as they were, and nothing gets in that a database can't keep."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.lanes import Address, Identity, Place
from segue.core.messages import (
    DEEPEST,
    LONGEST_TEXT,
    Arrival,
    Delivery,
    File,
    Notice,
    Part,
    Parts,
    Reasoning,
    Speaker,
    Summary,
    Text,
    ToolCall,
    ToolResult,
    decode_parts,
    encode_parts,
    plain_text,
)
from segue.errors import Invalid

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
part: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, texts),
    st.builds(File, texts, texts, texts, st.integers(0, 2**53)),
    st.builds(Reasoning, texts, values),
    st.builds(ToolCall, texts, texts, values),
    st.builds(ToolResult, texts, values, st.booleans()),
    st.builds(Notice, texts),
    st.builds(Summary, texts, texts, st.integers(0, 2**53)),
)
parts = st.lists(part, max_size=5).map(tuple)


CORNERS: dict[str, Callable[[str], Parts]] = {
    "text": lambda text: (Text(text),),
    "a later part": lambda text: (Text("fine"), Text(f"fine{text}fine")),
    "notice": lambda text: (Notice(text),),
    "summary": lambda text: (Summary(text, "s", 1),),
    "a summary's session": lambda text: (Summary("fine", text, 1),),
    "a file's name": lambda text: (File(text, "image/png", "x"),),
    "a file's type": lambda text: (File("x", text, "x"),),
    "a file's place": lambda text: (File("x", "image/png", text),),
    "a call's id": lambda text: (ToolCall(text, "tool", {}),),
    "a tool's name": lambda text: (ToolCall("1", text, {}),),
    "an argument": lambda text: (ToolCall("1", "tool", text),),
    "an argument by name": lambda text: (ToolCall("1", "tool", {"fine": text}),),
    "an argument's name": lambda text: (ToolCall("1", "tool", {text: "fine"}),),
    "a name further in": lambda text: (ToolCall("1", "tool", [{"a": {text: {}}}]),),
    "deep inside": lambda text: (ToolCall("1", "tool", nest(text, 50)),),
    "a result": lambda text: (ToolResult("1", ["fine", [text]]),),
    "a result's id": lambda text: (ToolResult(text, "fine"),),
    "a provider": lambda text: (Reasoning(text, {}),),
    "a thought": lambda text: (Reasoning("p", {"blocks": [{"signature": text}]}),),
}
"""Every corner of a message that a text can hide in."""
in_every_corner = pytest.mark.parametrize("hide", CORNERS.values(), ids=CORNERS)


def nest(inside: object, depth: int) -> object:
    """Lists and objects around it, by turns."""
    for level in range(depth):
        inside = [inside] if level % 2 else {"in": inside}
    return inside


# There and back


@given(parts)
def test_parts_come_back_as_they_were(parts: Parts) -> None:
    assert decode_parts(encode_parts(parts)) == parts


@pytest.mark.parametrize(
    ("kept", "parts"),
    [
        ('[{"type":"text","text":"hi"}]', (Text("hi"),)),
        ('[{"type":"notice","text":"hi"}]', (Notice("hi"),)),
        ('[{"type":"summary","text":"hi","session":"s","n":3}]', (Summary("hi", "s", 3),)),
        (
            '[{"type":"file","name":"a.png","media":"image/png","where":"x","size":3}]',
            (File("a.png", "image/png", "x", 3),),
        ),
        ('[{"type":"reasoning","provider":"p","raw":{"b":1,"a":[]}}]', (Reasoning("p", {"b": 1, "a": []}),)),
        ('[{"type":"call","id":"1","name":"t","arguments":{"x":null}}]', (ToolCall("1", "t", {"x": None}),)),
        ('[{"type":"result","id":"1","content":[1.5],"failed":true}]', (ToolResult("1", [1.5], failed=True),)),
        ("[]", ()),
    ],
)
def test_what_is_kept_never_changes_its_shape(kept: str, parts: Parts) -> None:
    assert encode_parts(parts) == kept
    assert decode_parts(kept) == parts


@in_every_corner
def test_what_only_looks_dangerous_is_kept(hide: Callable[[str], Parts]) -> None:
    for text in (
        "\\u0000",
        "\\\\u0000",
        "\\",
        '"',
        "\\x00",
        "%00",
        "\u2400",
        "\\ud800",
        "\x01\x1f\x7f",
        "\u2028",
        "é😀",
    ):
        assert decode_parts(encode_parts(hide(text))) == hide(text)


def test_numbers_of_any_size_are_kept() -> None:
    parts = (ToolCall("1", "tool", [2**53 + 1, 2**64, -(2**64), 10**40, 0.1, 1e300, -0.0]),)
    assert decode_parts(encode_parts(parts)) == parts


# What can't be kept


@in_every_corner
def test_a_nul_is_refused_wherever_it_hides(hide: Callable[[str], Parts]) -> None:
    for text in ("\0", "x\0y", "\\\0", "\\u0000\0"):
        with pytest.raises(Invalid, match="NUL"):
            encode_parts(hide(text))


@in_every_corner
def test_a_lone_surrogate_is_refused_wherever_it_hides(hide: Callable[[str], Parts]) -> None:
    for text in ("\ud800", "x\udfff", "\ud83d\ude00"):
        with pytest.raises(Invalid, match="surrogate"):
            encode_parts(hide(text))


@given(values, st.sampled_from(["\0", "\ud800"]), st.data())
def test_whatever_surrounds_it_one_bad_character_is_refused(value: object, bad: str, data: st.DataObject) -> None:
    def spoil(value: object) -> object:
        if isinstance(value, list) and value:
            at = data.draw(st.integers(0, len(value) - 1))
            return [spoil(item) if i == at else item for i, item in enumerate(value)]
        if isinstance(value, dict) and value:
            at = data.draw(st.sampled_from(list(value)))
            return {key: spoil(item) if key == at else item for key, item in value.items()}
        return data.draw(st.sampled_from([bad, f"x{bad}y", {bad: 1}, [[], bad]]))

    with pytest.raises(Invalid):
        encode_parts((ToolCall("1", "tool", spoil(value)),))


@pytest.mark.parametrize("letter", ["x", "é", "😀"])
def test_ten_megabytes_of_text_are_fine(letter: str) -> None:
    parts = (Text(letter * 10 * 1024 * 1024),)
    assert decode_parts(encode_parts(parts)) == parts


def test_a_message_may_be_as_long_as_the_limit_and_no_longer() -> None:
    frame = len(encode_parts((Text(""),)))
    assert len(encode_parts((Text("x" * (LONGEST_TEXT - frame)),))) == LONGEST_TEXT
    with pytest.raises(Invalid, match="16,777,217 characters"):
        encode_parts((Text("x" * (LONGEST_TEXT - frame + 1)),))


def test_what_is_nested_too_deep_to_be_read_everywhere_is_refused() -> None:
    parts = (ToolCall("1", "tool", nest("x", DEEPEST)),)
    assert decode_parts(encode_parts(parts)) == parts
    for more in (1, 2, 500, 2_000, 100_000):
        with pytest.raises(Invalid, match="nested"):
            encode_parts((ToolCall("1", "tool", nest("x", DEEPEST + more)),))


def test_a_text_full_of_brackets_is_not_nested() -> None:
    parts = (Text("[{" * 10_000),)
    assert decode_parts(encode_parts(parts)) == parts


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param("", id="nothing"),
        pytest.param("null", id="null"),
        pytest.param("{}", id="an object"),
        pytest.param('["text"]', id="a bare string"),
        pytest.param('[{"text":"hi"}]', id="no type"),
        pytest.param('[{"type":"song","text":"la"}]', id="an unknown type"),
        pytest.param('[{"type":"text"}]', id="no text"),
        pytest.param('[{"type":"text","text":7}]', id="a number for a text"),
        pytest.param('[{"type":"text","text":"hi"}', id="cut off"),
        pytest.param('[{"type":"text","text":"\\ud800"}]', id="an escaped lone surrogate"),
        pytest.param('[{"type":"text","text":"\ud800"}]', id="a lone surrogate"),
        pytest.param('[{"type":"call","id":"1","name":"t","arguments":' + "[" * 100_000, id="nested without end"),
    ],
)
def test_what_was_never_kept_is_refused(kept: str) -> None:
    with pytest.raises(Invalid) as refused:
        decode_parts(kept)
    assert refused.value.field == "parts"


@given(st.text(st.characters(exclude_categories=())))
def test_whatever_is_read_is_parts_or_refused(text: str) -> None:
    try:
        parts = decode_parts(text)
    except Invalid:
        return
    assert isinstance(parts, tuple)


# The words of a message


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((), ""),
        ((Text("hi"),), "hi"),
        ((Text("one"), ToolCall("1", "t", {"x": "no"}), ToolResult("1", "no"), Text("two")), "one\n\ntwo"),
        ((Reasoning("p", "no"), File("no", "image/png", "no"), Notice("moved")), "moved"),
        ((Summary("in short", "s", 1),), "in short"),
    ],
)
def test_the_words_of_a_message(parts: Parts, words: str) -> None:
    assert plain_text(parts) == words


# Redeliveries


def arrival(message: str, *seen_as: str, chat: str = "C1", thread: str = "") -> Arrival:
    place = Place(Address("slack", "app", "T1", chat, thread))
    return Arrival(place, message, Speaker(Identity("slack", "app", "U1")), (Text("hi"),), 0.0, seen_as)


@pytest.mark.parametrize(
    ("arrival", "keys"),
    [
        pytest.param(arrival("m1"), ("slack/app/T1/C1/m1",), id="its id, in its chat"),
        pytest.param(arrival("m1", thread="9.1"), ("slack/app/T1/C1/m1",), id="whichever thread it was seen in"),
        pytest.param(arrival("m1", "e1", "e2"), ("slack/app/T1/C1/m1", "e1", "e2"), id="and what else tells it"),
        pytest.param(arrival("m1", "e1", "e1"), ("slack/app/T1/C1/m1", "e1"), id="each once"),
        pytest.param(arrival("", "e1", ""), ("e1",), id="a missing id tells nothing"),
        pytest.param(arrival(""), (), id="no id at all"),
    ],
)
def test_the_keys_that_tell_a_redelivery(arrival: Arrival, keys: tuple[str, ...]) -> None:
    assert arrival.keys == keys


def test_messages_of_two_chats_are_never_taken_for_one_another() -> None:
    one, other = arrival("b/m", chat="a"), arrival("m", chat="a/b")
    assert not set(one.keys) & set(other.keys)


@pytest.mark.parametrize(
    ("attempt", "doubtful", "message", "may"),
    [
        (0, 1, "", False),
        (1, 0, "", False),
        (1, 1, "", True),
        (2, 1, "", False),
        (2, 2, "", True),
        (1, 1, "known", False),
    ],
)
def test_a_placeholder_may_be_there_if_more_is_in_doubt_than_earlier_attempts(
    attempt: int, doubtful: int, message: str, *, may: bool
) -> None:
    address = Address("feishu", "bot", chat="c")
    delivery = Delivery("1", address, "s", 1, "hello", "key", message, attempt=attempt, doubtful=doubtful)
    assert delivery.may_have_placeholder is may
