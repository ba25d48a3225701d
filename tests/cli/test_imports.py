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


def test_without_apply_nothing_is_written(home: Home, hermes: Path) -> None:
    lines = home.segue("import", "hermes", str(hermes)).stdout.splitlines()
    assert [line.split()[:2] for line in lines[:2]] == [["new", "20260102_030405_a"], ["empty", "20260102_030405_b"]]
    assert lines[2] == "1 sessions with 2 entries, 0 lanes and 0 homes would be brought in."
    assert lines[-1] == "Nothing was written. Add --apply to bring it in."
    assert not list(home.path.iterdir())


def test_the_owner_s_chats_are_the_host_s_before_a_gateway_ran(
    home: Home, hermes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_SECRET", "a-secret-of-some-length")
    origin = {"platform": "http", "chat_type": "dm", "chat_id": "ann", "user_id": "ann", "user_name": "Ann"}
    entry = {"session_id": "20260102_030405_a", "updated_at": "2026-01-02T03:04:05", "origin": origin}
    (hermes / "sessions" / "sessions.json").write_text(json.dumps({"agent:main:http:dm:ann": entry}))
    strangers = home.segue("import", "hermes", str(hermes)).stdout
    assert 'If that is you, name "http.main/ann" in owners' in strangers
    assert "http has no account here, or several. Set it up first" in strangers
    table = '[http.api]\nsecret = "env:API_SECRET"\ncallback = "http://localhost:9/"\n'
    (home.path / "segue.toml").write_text(f'owners = ["http.api/ann"]\n{table}')
    report = home.json("import", "hermes", str(hermes), "--apply")
    assert ([each["owner"] for each in report["listed"]], report["lanes"]) == (["", ""], 1)
    assert len(home.json("sessions", "list")) == 1


def test_a_hermes_home_is_brought_in_once(home: Home, hermes: Path) -> None:
    report = home.json("import", "hermes", str(hermes), "--apply")
    assert (report["sessions"], report["entries"], report["known"], report["empty"]) == (1, 2, 0, 1)
    assert len(report["skipped"]) == 1
    [session] = home.json("sessions", "list")
    entries = home.json("sessions", "show", session["id"])["entries"]
    assert [entry["author"]["role"] for entry in entries] == ["person", "agent"]
    lines = home.segue("import", "hermes", str(hermes), "--apply").stdout.splitlines()
    assert lines[:3] == [
        "0 sessions with 0 entries, 0 lanes and 0 homes were brought in.",
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
