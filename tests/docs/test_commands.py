"""The page of all commands is that of today's table."""

from pathlib import Path

from segue.config.sections import LanesSection
from tests.docs.commands import FOOTER, page

DOCUMENT = Path(__file__).parents[2] / "docs" / "commands.md"


def test_the_written_page_is_that_of_the_table() -> None:
    assert DOCUMENT.read_text("utf-8") == page(), "write it anew: python -m tests.docs.commands > docs/commands.md"


def test_the_settings_on_the_page_are_the_defaults() -> None:
    section = LanesSection()
    assert f'quotes = "{section.quotes}"' in FOOTER
    assert f"max_live_per_lane = {section.max_live_per_lane} " in FOOTER
