"""Drills look at a database whole: nobody lives in it but those of the drill."""

from pathlib import Path

import pytest

from tests.today import file_of_today


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty database with today's schema is, on either kind."""
    if request.param == "postgres":
        dsn: str = request.getfixturevalue("today_dsn")
        return dsn
    return file_of_today(tmp_path / "segue.db")
