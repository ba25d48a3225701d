"""The page of promises has the drills' own numbers, and names tests that are there."""

from pathlib import Path

from tests.docs.promises import PROMISES, page

ROOT = Path(__file__).parents[2]


def test_the_written_page_has_the_drills_own_numbers() -> None:
    text = (ROOT / "docs" / "promises.md").read_text("utf-8")
    assert text == page(), "write it anew: python -m tests.docs.promises > docs/promises.md"


def test_every_named_test_is_there() -> None:
    missing = [promise.test for promise in PROMISES if not (ROOT / "tests" / promise.test).exists()]
    assert missing == []
