"""A sample of the drill without file descriptors."""

from pathlib import Path

from tests.drills import descriptors


def test_what_is_accepted_without_file_descriptors_is_answered(tmp_path: Path) -> None:
    assert descriptors.run(str(tmp_path / "segue.db"), messages=30) == []
