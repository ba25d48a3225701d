"""The page of settings names every key, each with the default that holds."""

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from segue.config import default
from segue.config.loading import SECTIONS, SETS, from_tables
from segue.config.sections import (
    ContextSection,
    LanesSection,
    SchedulesSection,
    ServerSection,
)
from segue.core.settings import AccountSettings
from segue.core.values import Value

PAGE = Path(__file__).parent.parent.parent / "docs" / "settings.md"
FILE, ACCOUNT = map(tomllib.loads, re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))


def test_the_file_on_the_page_is_the_same_as_none(tmp_path: Path) -> None:
    environ = {"SEGUE_HOME": str(tmp_path)}
    assert from_tables(FILE, tmp_path / "segue.toml", environ) == default(environ)
    # Further agents, and what people have of their own, have no defaults to show.
    assert set(FILE) == set(SECTIONS) - {"agents", "people"}


@pytest.mark.parametrize(
    ("said", "section"),
    [
        (FILE["lanes"], LanesSection),
        (FILE["context"], ContextSection),
        (FILE["schedules"], SchedulesSection),
        ({**FILE["server"], "status_token": None}, ServerSection),
        ({**ACCOUNT, **dict.fromkeys(("home", "dm_threads", "retention_days", "tools", "commands"))}, AccountSettings),
    ],
)
def test_no_key_is_missing_on_the_page(said: dict[str, object], section: type[Value]) -> None:
    assert msgspec.json.decode(msgspec.json.encode(section())) == said


@pytest.mark.parametrize("table", list(SETS))
def test_no_setting_of_the_gateway_is_missing_on_the_page(table: str) -> None:
    assert set(FILE[table]) == set(SETS[table])
    assert set(FILE["children"]) == {"depth", "live", "budget"}
