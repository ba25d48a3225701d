"""Normal forms: as Unicode has them for all that people write, and never longer in the making than the text is long."""

import ast
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segue
from segue.core.text import normal as module
from segue.core.text.normal import normal

ANY = st.text(st.characters() | st.sampled_from("\u0301\u0323\u0344\u0345\u0f73\uff9e\u1100\u1161\u11a8\ufdfaé"))
HOSTILE = {
    "marks out of order": "\u0301\u0323",
    "marks that come apart": "\u0344\u0323",
    "marks in disguise": "\uff9e\u0334",
    "Tibetan vowels": "\u0f73\u0f71",
}
DOORS = (
    "from segue.core import lanes, people, titles\nfrom segue.core.text import search_words",
    "place = lanes.Place(lanes.Address('a', 'b'), name=text, topic=text)",
    "doors = lanes.clean_name, titles.clean, titles.parse, search_words.words_of, people.read_code",
    "lanes.clean_place(place)",
    "[door(text) for door in doors]",
)


@given(ANY, st.sampled_from(["NFC", "NFKC"]))
def test_what_people_write_has_its_normal_form(text: str, form: Literal["NFC", "NFKC"]) -> None:
    if len(text) <= 15:
        assert normal(text, 1000, form) == unicodedata.normalize(form, text)


@given(ANY, st.integers(0, 40), st.sampled_from(["NFC", "NFKC"]))
def test_what_was_normal_stays(text: str, most: int, form: Literal["NFC", "NFKC"]) -> None:
    found = normal(text * 20, most * 20, form)
    assert len(found) <= most * 20
    assert normal(found, most * 20, form) == found
    assert unicodedata.is_normalized(form, found)


def test_what_comes_apart_into_marks_is_known() -> None:
    found = [
        c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.combining(unicodedata.normalize("NFKD", c)[0])
    ]
    assert {c for c in found if not unicodedata.combining(c)} == module._DISGUISED


@pytest.mark.parametrize("marks", HOSTILE.values(), ids=HOSTILE)
def test_no_text_holds_a_door_up(marks: str) -> None:
    # A process of its own, because nothing else ends what holds an interpreter up.
    script = "\n".join((f"text = 'a' + {marks!r} * 100_000", *DOORS))
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_nothing_else_normalises() -> None:
    """Text of any length normalised anywhere else could hold everybody up."""
    found = {
        path.name
        for path in Path(segue.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Attribute) and node.attr in {"normalize", "is_normalized"}
    }
    assert found == {"normal.py"}
