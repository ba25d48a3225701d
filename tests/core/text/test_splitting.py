"""Splitting: every piece fits, nothing visible is lost, and nothing is cut that fits by itself."""

import re
import unicodedata
from enum import Enum, auto
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.text import splitting
from segue.core.text.splitting import graphemes
from segue.core.values import Value


class Measure(Enum):
    CHARACTERS = auto()
    UTF16 = auto()
    BYTES = auto()


class Longest(Value, frozen=True):
    count: int
    measure: Measure = Measure.CHARACTERS


def split(text: str, longest: Longest) -> list[str]:
    return list(splitting.split(text, lambda piece: size(piece, longest.measure) <= longest.count))


SMALLEST = {Measure.CHARACTERS: 1, Measure.UTF16: 2, Measure.BYTES: 4}
PIECES = (
    *(
        "a",
        "word",
        "A sentence. ",
        "Why? ",
        " ",
        "  ",
        "\n",
        "\n\n",
        "\r\n",
        "\t",
        "\u00a0",
        "\u3000",
        "-",
        "- ",
        "1. ",
    ),
    *("# ", "> ", "*", "**", "_", "~~", "||", "`", "``", "```", "```py\n", "\n```\n", "~~~", "[", "](", ")", "[l](u)"),
    *("\\", "!", "é", "e\u0301", "漢字。", "😀", "👩\u200d👧", "🇩🇪", "🇩", "\u200d", "\u0301", "क्षि", "\x00", "\ufeff"),
)
TEXTS = st.text() | st.lists(st.sampled_from(PIECES), max_size=60).map("".join)
WORDS = st.lists(st.text("abcdefgh", min_size=1, max_size=9), min_size=1, max_size=12)


@st.composite
def limits(draw: st.DrawFn, smallest: int = 0, largest: int = 60) -> Longest:
    measure = draw(st.sampled_from(Measure))
    return Longest(draw(st.integers(max(smallest, SMALLEST[measure]), max(largest, 4))), measure)


def size(text: str, measure: Measure) -> int:
    match measure:
        case Measure.CHARACTERS:
            return len(text)
        case Measure.UTF16:
            return len(text.encode("utf-16-le", "surrogatepass")) // 2
        case Measure.BYTES:
            return len(text.encode("utf-8", "surrogatepass"))


def seen(text: str) -> str:
    return "".join(text.split())


def fences(text: str) -> str:
    """A text without its fences: what is left must stay."""
    return re.sub(r"^[ \t>]*(```|~~~).*$", "", text, flags=re.MULTILINE)


@given(TEXTS, limits())
def test_every_piece_fits(text: str, longest: Longest) -> None:
    pieces = split(text, longest)
    assert [p for p in pieces if size(p, longest.measure) > longest.count] == []
    assert all(piece.strip() for piece in pieces)
    assert bool(pieces) == bool(text.strip())


@given(TEXTS.filter(lambda text: "```" not in text and "~~~" not in text), limits())
def test_only_white_space_is_lost(text: str, longest: Longest) -> None:
    assert seen("".join(split(text, longest))) == seen(text)


@given(TEXTS, limits())
def test_with_fences_too_nothing_visible_is_lost(text: str, longest: Longest) -> None:
    rest = iter(seen("".join(split(text, longest))))
    assert all(character in rest for character in seen(text)), "in this order"


@given(TEXTS, limits())
def test_what_fits_is_left_as_it_is(text: str, longest: Longest) -> None:
    if text.strip():
        assert split(text, Longest(max(size(text, longest.measure), 4), longest.measure)) == [text]
    for piece in split(text, longest):
        assert split(piece, longest) == [piece]


@given(TEXTS.filter(lambda text: "```" not in text and "~~~" not in text), limits(smallest=8))
def test_no_character_is_cut_that_fits(text: str, longest: Longest) -> None:
    """Each character of the text is one of the pieces' characters."""
    whole = [text[s:e] for s, e in graphemes(text, 0, len(text))]
    if any(size(one, longest.measure) > longest.count for one in whole):
        return
    found = [piece[s:e] for piece in split(text, longest) for s, e in graphemes(piece, 0, len(piece))]
    assert [one for one in found if one.strip()] == [one for one in whole if one.strip()]


@given(st.lists(st.lists(WORDS, min_size=1, max_size=4), min_size=1, max_size=6), limits(smallest=9))
def test_nothing_is_cut_that_fits_by_itself(paragraphs: list[list[list[str]]], longest: Longest) -> None:
    lines = [[" ".join(words) for words in paragraph] for paragraph in paragraphs]
    text = "\n\n".join("\n".join(paragraph) for paragraph in lines)
    pieces = split(text, longest)
    units = ["\n".join(paragraph) for paragraph in lines]
    units += [line for paragraph in lines for line in paragraph]
    units += text.split()
    for unit in units:
        if len(unit) <= longest.count:
            assert any(unit in piece for piece in pieces), unit


@given(st.lists(WORDS.map(" ".join), min_size=1, max_size=8), limits(smallest=9, largest=40))
def test_pieces_are_filled(lines: list[str], longest: Longest) -> None:
    """No two neighbours would have fitted into one message."""
    pieces = split("\n".join(lines), longest)
    for one, two in pairwise(pieces):
        assert len(one) + 1 + len(two) > longest.count


@st.composite
def documents(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Prose and blocks of code, each as its fence (empty for prose) and its lines."""
    parts = []
    for _ in range(draw(st.integers(1, 5))):
        fence = draw(st.sampled_from(["", "```", "```py", "~~~", "````md"]))
        line = WORDS.map(" ".join)
        if fence:
            line = st.builds(lambda indent, words: indent + words, st.sampled_from(["", "  ", "\t"]), line) | st.just(
                ""
            )
        parts.append((fence, "\n".join(draw(st.lists(line, min_size=1, max_size=6)))))
    return parts


def written(fence: str, body: str) -> str:
    return f"{fence}\n{body}\n{fence.rstrip('pymd')}" if fence else body


def parsed(text: str) -> list[tuple[str, str]]:
    """A document read back line by line; a block that isn't closed fails."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in text.split("\n"):
        fence, body = parts[-1]
        if not fence and line.startswith(("```", "~~~")):
            parts.append((line, []))
        elif fence and line == fence.rstrip("pymd"):
            parts.append(("", []))
        else:
            body.append(line)
    assert not parts[-1][0]
    return [(fence, "\n".join(body)) for fence, body in parts]


@given(documents(), limits(smallest=24, largest=90))
def test_code_stays_code(document: list[tuple[str, str]], longest: Longest) -> None:
    text = "\n\n".join(written(*part) for part in document)
    pieces = split(text, longest)
    found = [part for piece in pieces for part in parsed(piece)]
    for one in {fence for fence, _ in document}:
        there = "".join(body for fence, body in found if fence == one)
        assert seen(there) == seen("".join(body for fence, body in document if fence == one))
    prose = seen("".join(body for fence, body in found if not fence))
    assert prose == seen("".join(body for fence, body in document if not fence))


@given(documents(), limits(smallest=24, largest=90))
def test_a_block_that_fits_is_never_cut(document: list[tuple[str, str]], longest: Longest) -> None:
    pieces = split("\n\n".join(written(*part) for part in document), longest)
    for fence, body in document:
        if fence and len(written(fence, body)) <= longest.count and body.strip():
            assert any(written(fence, body) in piece for piece in pieces)


@given(documents(), limits(smallest=24, largest=90))
def test_no_message_shows_an_empty_block(document: list[tuple[str, str]], longest: Longest) -> None:
    full = [(fence, body) for fence, body in document if body.strip()]
    for piece in split("\n\n".join(written(*part) for part in full), longest):
        assert all(body.strip() for fence, body in parsed(piece) if fence)


CASES = [
    pytest.param("", 10, [], id="nothing"),
    pytest.param(" \n ", 1, [], id="nothing that can be seen"),
    pytest.param("one\n\ntwo", 7, ["one", "two"], id="between paragraphs"),
    pytest.param("one two\nthree\n\nfour", 13, ["one two\nthree", "four"], id="rather paragraphs than lines"),
    pytest.param("One two. Three\nfour.", 15, ["One two. Three", "four."], id="rather lines than sentences"),
    pytest.param("One. Two three four.", 16, ["One.", "Two three four."], id="rather sentences than words"),
    pytest.param("one two three", 9, ["one two", "three"], id="between words"),
    pytest.param("short\n\n" + "w" * 8, 10, ["short", "w" * 8], id="a word that fits isn't cut to fill a piece"),
    pytest.param("ab " + "w" * 12, 10, ["ab " + "w" * 7, "w" * 5], id="a word that can't fit fills it"),
    pytest.param("- one two\n- three\n  four\n- five", 18, ["- one two", "- three\n  four", "- five"], id="list items"),
    pytest.param("1) one two\n2) three\n   four", 20, ["1) one two", "2) three\n   four"], id="numbered items"),
    pytest.param("one\n\n# Head\n\ntwo two", 15, ["one", "# Head\n\ntwo two"], id="a heading goes with its text"),
    pytest.param("漢字。仮名。", 4, ["漢字。", "仮名。"], id="sentences without spaces"),
    pytest.param("a\u00a0b c", 4, ["a\u00a0b", "c"], id="a space that doesn't break"),
    pytest.param("aa **bb cc** dd", 10, ["aa", "**bb cc**", "dd"], id="emphasis"),
    pytest.param("aa _b. c_ dd", 8, ["aa", "_b. c_", "dd"], id="emphasis over sentences"),
    pytest.param("aa ~~b\nc~~ dd", 10, ["aa ~~b\nc~~", "dd"], id="emphasis over lines"),
    pytest.param("aa `b c d` ee", 9, ["aa", "`b c d`", "ee"], id="inline code"),
    pytest.param("aa ``b ` c`` ee", 11, ["aa", "``b ` c``", "ee"], id="inline code with a tick in it"),
    pytest.param("see [a b c](u) now", 14, ["see [a b c](u)", "now"], id="a link"),
    pytest.param("see [a b](u(v)w) it", 12, ["see", "[a b](u(v)w)", "it"], id="a link with brackets in it"),
    pytest.param('s [a b](u "t u") it', 15, ["s", '[a b](u "t u")', "it"], id="a link with a title"),
    pytest.param("2 * 3 * 4 is 24", 9, ["2 * 3 * 4", "is 24"], id="stars that aren't emphasis"),
    pytest.param("x a_b c_ d", 7, ["x a_b", "c_ d"], id="underscores in names"),
    pytest.param(r"a \*b c\* d", 8, [r"a \*b", r"c\* d"], id="escaped stars"),
    pytest.param("xx `*a` b* c", 8, ["xx `*a`", "b* c"], id="stars in inline code"),
    pytest.param("**one two three**", 9, ["**one two", "three**"], id="emphasis that can't fit"),
    pytest.param("\n\none\n\ntwo\n", 5, ["one", "two"], id="white space around"),
    pytest.param("    one\n    two", 8, ["    one", "    two"], id="indentation is kept"),
    pytest.param("one\r\n\r\ntwo", 5, ["one", "two"], id="another line break"),
]


@pytest.mark.parametrize(("text", "count", "pieces"), CASES)
def test_where_a_text_is_cut(text: str, count: int, pieces: list[str]) -> None:
    assert split(text, Longest(count)) == pieces


FENCED = [
    pytest.param(
        "```py\none\ntwo\nthree\n```",
        20,
        ["```py\none\ntwo\n```", "```py\nthree\n```"],
        id="closed and opened again with its language",
    ),
    pytest.param(
        "~~~~\none one\ntwo two\n~~~~", 21, ["~~~~\none one\n~~~~", "~~~~\ntwo two\n~~~~"], id="with the same fence"
    ),
    pytest.param(
        "  ```\n  one one\n  two two\n  ```",
        24,
        ["  ```\n  one one\n  ```", "  ```\n  two two\n  ```"],
        id="with the same indentation",
    ),
    pytest.param(
        "> ```\n> one\n> two two\n> ```", 24, ["> ```\n> one\n> ```", "> ```\n> two two\n> ```"], id="in a quotation"
    ),
    pytest.param("some text\n\n```\none\n```", 16, ["some text", "```\none\n```"], id="cut before, not inside"),
    pytest.param("```\none\n```\ntext text", 20, ["```\none\n```", "text text"], id="cut after, not inside"),
    pytest.param("```\na a\nbb\nccc cc\n```", 17, ["```\na a\nbb\n```", "```\nccc cc\n```"], id="its lines stay whole"),
    pytest.param(
        "```\naa\nbb\n\ncc\ndd\n```", 18, ["```\naa\nbb\n```", "```\ncc\ndd\n```"], id="rather at its empty lines"
    ),
    pytest.param(
        "```\none two three four\n```", 19, ["```\none two\n```", "```\nthree four\n```"], id="a line that can't fit"
    ),
    pytest.param(
        "```\n  one\n  two two\n```", 18, ["```\n  one\n```", "```\n  two two\n```"], id="code keeps its indents"
    ),
    pytest.param("```\none one\ntwo two", 16, ["```\none one\n```", "```\ntwo two"], id="a block that is never closed"),
    pytest.param("```\n" + "\n" * 20 + "```", 18, ["```", "```"], id="a large block with nothing in it"),
    pytest.param("```py\none two three\n```", 12, ["```py\none", "two three", "```"], id="no room for fences"),
    pytest.param(
        "```a``` is code\n" + "w w " * 9, 40, ["```a``` is code", ("w w " * 9).strip()], id="ticks on one line"
    ),
    pytest.param(
        "```\n~~~\naa aa\n```\ncc cc cc", 18, ["```\n~~~\naa aa\n```", "cc cc cc"], id="another fence inside is code"
    ),
    pytest.param(
        "````\n```\naa aa\n```\nbb bb bb\n````",
        24,
        ["````\n```\naa aa\n```\n````", "````\nbb bb bb\n````"],
        id="a shorter fence inside is code",
    ),
]


@pytest.mark.parametrize(("text", "count", "pieces"), FENCED)
def test_where_a_block_is_cut(text: str, count: int, pieces: list[str]) -> None:
    assert split(text, Longest(count)) == pieces


@pytest.mark.parametrize(
    ("text", "longest", "pieces"),
    [
        pytest.param("😀😀😀", Longest(2), ["😀😀", "😀"], id="characters"),
        pytest.param("😀😀😀", Longest(5, Measure.UTF16), ["😀😀", "😀"], id="half a pair left over"),
        pytest.param("ééé", Longest(5, Measure.BYTES), ["éé", "é"], id="half a letter left over"),
        pytest.param("a😀", Longest(2, Measure.UTF16), ["a", "😀"], id="a pair that doesn't fit any more"),
        pytest.param("👩\u200d👧👩\u200d👧", Longest(5), ["👩\u200d👧", "👩\u200d👧"], id="emoji that are one"),
        pytest.param("🇩🇪🇫🇷", Longest(3), ["🇩🇪", "🇫🇷"], id="flags"),
        pytest.param("e\u0301e\u0301", Longest(3), ["e\u0301", "e\u0301"], id="accents"),
        pytest.param("x" + "\u0301" * 5, Longest(4), ["x" + "\u0301" * 3, "\u0301" * 2], id="larger than a message"),
        pytest.param("abc", Longest(1), ["a", "b", "c"], id="one a message"),
    ],
)
def test_what_counts(text: str, longest: Longest, pieces: list[str]) -> None:
    assert split(text, longest) == pieces


@pytest.mark.parametrize("longest", [Longest(0), Longest(1, Measure.UTF16), Longest(3, Measure.BYTES)], ids=str)
def test_what_no_message_takes_is_left_to_the_platform_to_refuse(longest: Longest) -> None:
    assert split("😀\n\n😀", longest) == ["😀", "😀"]


def test_a_first_message_is_cut_without_looking_at_all_of_a_long_text() -> None:
    asked: list[str] = []

    def fits(text: str) -> bool:
        asked.append(text)
        return len(text) <= 100

    text = "Some words.\n\n" * 10_000
    assert len(next(splitting.split(text, fits))) <= 100
    assert asked.pop(0) == text
    assert max(map(len, asked)) < 400
    assert len(asked) < 12


def test_a_long_answer_in_messages_of_a_common_size() -> None:
    paragraph = " ".join(f"Sentence {n} of this paragraph says something." for n in range(12))
    code = "```python\n" + "\n".join(f"line_{n} = {n}" for n in range(300)) + "\n```"
    text = "\n\n".join([paragraph] * 10 + [code] + [paragraph] * 3)
    pieces = split(text, Longest(2000))
    assert all(len(piece) <= 2000 for piece in pieces)
    assert sum(piece.count(paragraph) for piece in pieces) == 13
    assert seen(fences("".join(piece + "\n" for piece in pieces))) == seen(fences(text))
    assert all(piece.count("```") % 2 == 0 for piece in pieces)
    assert all(not unicodedata.combining(piece[0]) for piece in pieces)
