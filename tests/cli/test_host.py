"""Files that a terminal leaves behind are their user's alone."""

import stat
from pathlib import Path

from segue.cli.host import make_log, private_file


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_log_and_a_history_are_for_their_user_alone(tmp_path: Path) -> None:
    make_log(tmp_path / "data")
    assert mode(tmp_path / "data" / "log") == 0o600
    older = tmp_path / "history"
    older.write_text("said before\n")
    older.chmod(0o644)
    assert mode(private_file(older)) == 0o600
    assert older.read_text() == "said before\n"
