"""Times in JSON: ISO 8601 with a zone, whichever command prints them."""

import json
import re
from typing import Any

import pytest

from segue.changes.exchange import letters
from segue.core.lanes import Person
from segue.store import Store
from tests.cli.conftest import Home

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
COMMANDS = {
    "sessions list": 2,
    "sessions show Trip": 4,
    "sessions show Trip --tree": 0,
    "sessions search where": 1,
    "sessions title Trip Journey": 2,
    "schedules list": 2,
    "lanes": 1,
    "people list": 1,
    "people show Ada": 2,
    "people read Ada": 3,
    "audit": 1,
    "letters list": 1,
    "doctor": 0,
    "status": 0,
}
"""Commands, and the fewest times that each prints."""


async def _more(store: Store, _host: Person) -> None:
    await store.driver.write(letters.bury, "telegram/bot", "what came", "it was torn", 10.0)


@pytest.fixture
def lived_in(home: Home) -> Home:
    """A home in which something of everything is."""
    for said in ("where to?", "/title Trip", "/schedule every day at 9 tell me the news"):
        assert home.segue("chat", "-m", said).exit_code == 0
    home.do(_more)
    return home


def test_times_are_iso_8601_everywhere(lived_in: Home) -> None:
    for command, fewest in COMMANDS.items():
        done = lived_in.segue(*command.split(), "--json")
        assert done.exit_code in (0, 1), done.output
        assert len(ISO.findall(done.stdout)) >= fewest, f"{command}: {done.stdout}"
        assert [n for n in _numbers(json.loads(done.stdout)) if 1e9 < n < 1e11] == [], command


def _numbers(value: Any) -> list[float]:
    match value:
        case dict():
            return [n for inner in value.values() for n in _numbers(inner)]
        case list():
            return [n for inner in value for n in _numbers(inner)]
        case int() | float():
            return [value]
        case _:
            return []
