"""A short, seeded sample of the drill of readers; `make drill` runs it at full length."""

from pathlib import Path

import pytest

from segue import Gateway
from segue.core.commands import SPECS
from tests.drills import parrots, readers


async def test_nobody_is_shown_what_is_not_theirs(tmp_path: Path) -> None:
    found = await readers.run(str(tmp_path / "segue.db"), steps=250, seed=7)
    assert found.wrong == ()
    assert found.shown > 250, "the agent tells what it knows"


@pytest.mark.full
async def test_nobody_is_shown_what_is_not_theirs_on_postgresql(today_dsn: str) -> None:
    found = await readers.run(today_dsn, steps=60, seed=3, often=4.0)
    assert found.wrong == ()


def test_every_command_is_typed_and_every_tool_is_called() -> None:
    assert {spec.name for spec in SPECS} == readers.TYPED.keys()
    assert Gateway()._turns._answering._toolbox.with_notebook.keys() == parrots.WISHES.keys()
