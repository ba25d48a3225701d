"""Questions: what people are asked is all that they see of it."""

import pytest

from segue.core.questions import checked
from segue.errors import Invalid


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        ("delete \u202egpj.sgnirtes", "delete \\u202egpj.sgnirtes"),
        ("\u2066rm\u2069 -rf", "\\u2066rm\\u2069 -rf"),
        ("clear \x1b[2J", "clear \\u001b[2J"),
        ("c1 \x9b31m", "c1 \\u009b31m"),
        ("a\u200bb \u2028c", "a\\u200bb \\u2028c"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("two\nlines, ünïcode, 漢字 😀", "two\nlines, ünïcode, 漢字 😀"),
    ],
)
def test_characters_that_hide_or_reorder_words_are_shown_as_codes(words: str, seen: str) -> None:
    assert checked(words, ()) == (seen, ())


def test_a_choice_has_none_of_them() -> None:
    with pytest.raises(Invalid, match="control or direction"):
        checked("Which?", ("yes", "n\u202eo"))
