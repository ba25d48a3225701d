"""A short, seeded sample of the drill of readers; `make drill` runs it at full length."""

from pathlib import Path

from tests.drills import readers


async def test_nobody_is_shown_what_is_not_theirs(tmp_path: Path) -> None:
    found = await readers.run(str(tmp_path / "segue.db"), steps=250, seed=7)
    assert found.wrong == ()
    assert found.shown > 250, "the agent tells what it knows"
