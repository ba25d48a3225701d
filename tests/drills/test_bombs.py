"""A sample of the bracket bombs; `make drill` lets off all of them."""

import pytest

from segue.adapters.shared.markup import columns
from segue.core.text.markdown import parse
from tests.drills import bombs
from tests.drills.bombs import PATTERNS, PLATFORMS, Sizes, bomb, lines, overparsed
from tests.drills.planting import Bug

WORST = ("[]([", "![", "*_~~a")
FOUND_BY_BOMBS = {
    Bug.RENDERS_EACH_GUESS: ("word ", Sizes(500, 5_000), "times its length"),
    Bug.BRACKETS_UNBOUNDED: ("![", Sizes(60, 600), "lines a character"),
}
"""With the bomb, and a part of what is said about it."""
_SMALL = Sizes(200, 2_000)


@pytest.mark.parametrize("name", PLATFORMS)
@pytest.mark.parametrize("pattern", ["[]([", "*_~~a", "> "])
def test_a_bomb_is_parsed_a_few_times_at_most(name: str, pattern: str) -> None:
    assert list(overparsed(name, pattern, Sizes(900, 9_000))) == []


@pytest.mark.parametrize("pattern", WORST)
def test_a_bomb_costs_what_its_length_explains(pattern: str) -> None:
    assert bombs.run([pattern], _SMALL) == []


def test_a_wide_cell_widens_no_other_row() -> None:
    """Padding would make 60 MB of this."""
    table = f"| a | b |\n| - | - |\n| {'wide ' * 2_000} | c |\n" + "| d | e |\n" * 900
    [tree] = [node for node in parse(table).walk() if node.type == "table"]
    assert len(columns(tree)) < 4 * len(table)


@pytest.mark.parametrize("bug", FOUND_BY_BOMBS, ids=lambda bug: bug.name)
def test_a_planted_mistake_is_found(bug: Bug) -> None:
    pattern, sizes, words = FOUND_BY_BOMBS[bug]
    found = bombs.run([pattern], sizes, bug)
    assert any(words in line for line in found), found


def test_work_is_counted() -> None:
    assert lines(lambda: parse(bomb(PATTERNS[0], 100))) > 10
