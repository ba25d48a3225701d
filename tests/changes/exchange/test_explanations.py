"""Texts of others, as a terminal may show them."""

import pytest

from segue.changes.exchange.explanations import printable


@pytest.mark.parametrize("text", ["\u0645\u06cc\u200c\u062e\u0648", "👩\u200d👩\u200d👧", "one\n\ttwo"])
def test_joiners_of_words_and_emoji_come_through(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize("text", ["\x1b[2J", "a\u202eb", "\u2066x", "\ud800", "\ufeff"])
def test_what_could_steer_a_terminal_does_not(text: str) -> None:
    assert all(c.isprintable() for c in printable(text))
