"""A walk over Markdown writes what each platform's marks say."""

from segue.adapters.shared.markup import Mark, between, columns, instead, lines, listed, rendered

STARS: dict[str, Mark] = {
    "strong": between("*", "*"),
    "em": between("_", "_"),
    "bullet_list": listed,
    "ordered_list": listed,
    "list_item": lines,
    "table": lambda node, _: columns(node),
    "softbreak": instead("\n"),
}
"""As a platform might have it that knows bold and italic, and nothing else."""


def shown(text: str) -> str:
    return rendered(text, STARS, lambda plain: plain.replace("*", "\\*"))


def test_what_has_a_mark_is_marked_and_the_rest_is_what_is_in_it() -> None:
    assert shown("# A *b* **c**\n\none\ntwo\n\n> said\n>\n> more") == "A _b_ *c*\n\none\ntwo\n\nsaid\n\nmore"
    assert shown(r"2 \* 3 and `code`") == r"2 \* 3 and code"
    assert shown("") == ""


def test_lists_and_tables_are_written_in_lines() -> None:
    assert shown("- a\n- b\n  1. c\n  2. d\n- e\n\n  f") == "• a\n• b\n  1. c\n  2. d\n• e\n  f"
    assert shown("7. a\n8. b") == "7. a\n8. b"
    assert shown("|a|bb|\n|-|-|\n|ccc|**d**|") == "a   | bb\nccc | d"
