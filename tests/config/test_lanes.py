"""[lanes]: what the host may set about flat chats."""

from pathlib import Path

import pytest

from segue.config.loading import from_tables
from segue.core.moves import Limits
from segue.core.settings import Quotes
from segue.errors import Invalid


def test_quotes_and_the_most_sessions_of_a_place_are_set(tmp_path: Path) -> None:
    environ = {"SEGUE_HOME": str(tmp_path)}
    plain = from_tables({}, tmp_path / "segue.toml", environ).gateway
    assert (plain.quotes, plain.routing.limits.live_per_lane) == (Quotes.OFF, Limits().live_per_lane)
    said = {"lanes": {"quotes": "switch", "max_live_per_lane": 3}}
    given = from_tables(said, tmp_path / "segue.toml", environ).gateway
    assert (given.quotes, given.routing.limits.live_per_lane) == (Quotes.SWITCH, 3)


@pytest.mark.parametrize(
    ("lanes", "field"),
    [({"quotes": "always"}, "lanes.quotes"), ({"max_live_per_lane": 0}, "lanes.max_live_per_lane")],
)
def test_a_mistake_names_the_key(tmp_path: Path, lanes: dict[str, object], field: str) -> None:
    with pytest.raises(Invalid) as wrong:
        from_tables({"lanes": lanes}, tmp_path / "segue.toml", {"SEGUE_HOME": str(tmp_path)})
    assert wrong.value.field == field
