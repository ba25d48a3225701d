import json
from pathlib import Path

import pytest

from tests.cli.conftest import Home


@pytest.fixture
def hermes(tmp_path: Path) -> Path:
    """A Hermes home with a session of two messages, one that is empty, and a line that is cut off."""
    folder = tmp_path / "hermes" / "sessions"
    folder.mkdir(parents=True)
    said = [{"role": "user", "content": "where is the tea?"}, {"role": "assistant", "content": "in the blue tin"}]
    lines = [json.dumps(message | {"timestamp": "2026-01-02T03:04:05"}) for message in said]
    (folder / "20260102_030405_a.jsonl").write_text("\n".join([*lines, '{"role": "us']))
    (folder / "20260102_030405_b.jsonl").write_text("")
    return tmp_path / "hermes"


def test_a_hermes_home_is_brought_in_once(home: Home, hermes: Path) -> None:
    report = home.json("import", "hermes", str(hermes))
    assert (report["sessions"], report["entries"], report["known"], report["empty"]) == (1, 2, 0, 1)
    assert len(report["skipped"]) == 1
    [session] = home.json("sessions", "list")
    entries = home.json("sessions", "show", session["id"])["entries"]
    assert [entry["author"]["role"] for entry in entries] == ["person", "agent"]
    lines = home.segue("import", "hermes", str(hermes)).stdout.splitlines()
    assert lines[:3] == [
        "0 sessions with 0 entries, and 0 lanes, were brought in.",
        "1 sessions were here already.",
        "1 sessions had nothing in them.",
    ]
    assert lines[3].startswith("Left out: sessions/20260102_030405_a.jsonl, ")
    assert len(home.json("sessions", "list")) == 1


def test_a_folder_without_hermes_is_a_mistake(home: Home, tmp_path: Path) -> None:
    done = home.segue("import", "hermes", str(tmp_path / "none"))
    assert done.exit_code == 2
    assert done.stderr.startswith(f"Error: home: {tmp_path / 'none'} has neither state.db nor sessions.")
    assert home.segue("import").exit_code == 2
    assert home.segue("import", "nope").exit_code == 2
