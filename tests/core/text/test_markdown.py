"""Markdown as a tree."""

import pytest

from segue.core.text.markdown import parse, words


def kinds(text: str) -> list[str]:
    return [node.type for node in parse(text).walk()]


def test_a_text_is_a_tree_of_its_markup() -> None:
    assert {"heading", "strong", "s", "link", "fence", "table", "ordered_list"} <= set(
        kinds("# A **b** ~~c~~\n\n1. [d](https://e.example)\n\n```py\nf\n```\n\n|g|h|\n|-|-|\n|i|j|")
    )


def test_what_looks_like_html_is_text() -> None:
    assert not {"html_block", "html_inline"} & set(kinds("<b>bold</b>\n\n<script>alert(1)</script>"))
    assert words(parse("<b>bold</b>")) == "<b>bold</b>"
    wide = "|" + "a|" * 200
    table = f"{wide}\n|{'-|' * 200}\n" + "a\n" * 1000
    assert not {"html_block", "html_inline"} & set(kinds(f"<script>alert(1)</script>\n\n{table}"))


def test_a_link_that_could_run_something_is_text() -> None:
    assert "link" not in kinds("[here](javascript:alert(1))")


def test_words_are_what_is_said_without_markup() -> None:
    assert words(parse("a *b* `c`\\\nd ![e](f)")) == "a b c\nd e"


@pytest.mark.parametrize("depth", [10, 48, 49, 50, 51, 300])
def test_no_words_are_lost_that_are_nested_deeply(depth: int) -> None:
    assert words(parse("> " * depth + "deep")).endswith("deep")
    assert words(parse("- " * depth + "deep")).endswith("deep")
    assert "deep" in words(parse("[" * depth + "deep" + "](http://x)" * depth))
    assert "deep" in words(parse("**a *" * depth + "deep" + "* b**" * depth))


def test_a_table_that_is_mostly_made_up_is_text() -> None:
    wide, rows = "|" + "a|" * 200, "a\n" * 1000
    assert "table" not in kinds(f"{wide}\n|{'-|' * 200}\n{rows}")
    assert "table" in kinds(f"|a|b|\n|-|-|\n{rows}")


def test_a_text_that_no_platform_takes_in_one_message_is_paragraphs() -> None:
    assert "strong" in kinds("**a** " * 3000)
    assert "strong" not in kinds("**a** " * 4000)
    assert len(words(parse("[" * 100_000))) == 100_000
