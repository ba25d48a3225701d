import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from segue.config import load
from tests.cli.conftest import Home

KEY = "sk-very-secret"


@pytest.fixture(autouse=True)
def bare(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nothing is to be found."""
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", str(home.path))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{free.getsockname()[1]}")


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        monkeypatch.setenv("OLLAMA_HOST", f"http://127.0.0.1:{port}")
        yield port


def test_a_bare_machine_gets_a_file_that_loads(home: Home) -> None:
    done = home.segue("init")
    file = home.path / "segue.toml"
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, f"Wrote {file}")
    assert all(line.startswith("#") for line in file.read_text().splitlines())
    assert load(file, {}).file == file
    assert "Found" not in done.stdout + file.read_text()
    assert home.segue("doctor").exit_code == 0


def test_what_is_there_is_found_and_no_secret_is_written(
    home: Home, ollama: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", " ")
    program = home.path / "gemini"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    found = home.json("init")["found"]
    assert [one["what"] for one in found] == ['"env:OPENAI_API_KEY"', f"Ollama at 127.0.0.1:{ollama}", str(program)]
    written = (home.path / "segue.toml").read_text()
    assert all(one["what"] in written for one in found)
    assert KEY not in written
    assert load(home.path / "segue.toml", {}).accounts == ()


def test_a_file_that_is_there_stays_unless_forced(home: Home) -> None:
    file = home.path / "segue.toml"
    file.write_text("[turns]\nslots = 2\n")
    done = home.segue("init")
    assert done.exit_code == 2
    told = f"Error: segue.toml: {file} is there already. Replace it with --force, or edit it.\n"
    assert (done.stdout, done.stderr) == ("", told)
    assert file.read_text() == "[turns]\nslots = 2\n"
    assert home.segue("init", "--force").exit_code == 0
    assert "slots" not in file.read_text()


def test_without_a_home_it_goes_to_this_folder(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEGUE_HOME")
    assert home.json("init")["file"] == str(tmp_path / "segue.toml")
    assert (tmp_path / "segue.toml").exists()


def test_a_place_that_cannot_be_is_one_line(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    (home.path / "file").write_text("")
    monkeypatch.setenv("SEGUE_HOME", str(home.path / "file"))
    done = home.segue("init")
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
    assert str(home.path / "file" / "segue.toml") in done.stderr
