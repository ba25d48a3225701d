import json
import os
import socket
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from segue.agents.acp.keys import AcpKeys
from segue.agents.models.keys import ModelKeys
from segue.config import load
from segue.core.values import Secret
from tests.cli.conftest import Home

KEY = "sk-very-secret"
PROGRAM = Path(__file__).parent.parent / "agents" / "acp" / "program.py"


@pytest.fixture(autouse=True)
def bare(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nothing is to be found."""
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", str(home.path))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{free.getsockname()[1]}")


class Tags(BaseHTTPRequestHandler):
    """What Ollama answers when it is asked for its models."""

    def do_GET(self) -> None:
        names = ["nomic-embed-text:latest", "llama3.2:3b", 'a"b', "qwen3:8b"]
        body = json.dumps({"models": [{"name": name} for name in names]}).encode()
        self.send_response(200 if self.path == "/api/tags" else 404)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the library's name
        """Say nothing."""


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), Tags) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        port = server.server_port
        monkeypatch.setenv("OLLAMA_HOST", f"http://127.0.0.1:{port}")
        yield port
        server.shutdown()
        serving.join()


def test_a_bare_machine_gets_a_file_that_loads(home: Home) -> None:
    done = home.segue("init")
    file = home.path / "segue.toml"
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, f"Wrote {file}")
    assert all(line.startswith("#") for line in file.read_text().splitlines())
    assert load(file, {}).file == file
    assert "Found" not in done.stdout + file.read_text()
    assert "The built-in agent answers" in done.stdout
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
    assert found[-1]["offers"] == "Gemini CLI; `segue add agent gemini` adds it"
    agent = load(home.path / "segue.toml", dict(os.environ)).agents[""]
    assert agent == ModelKeys("openai:gpt-5", api_key=Secret(KEY))


def test_models_on_this_machine_are_used_where_there_is_no_key(home: Home, ollama: int) -> None:
    done = home.segue("init")
    assert f"Found Ollama at 127.0.0.1:{ollama}: models on this machine: llama3.2:3b, qwen3:8b" in done.stdout
    assert "ollama:llama3.2:3b answers" in done.stdout
    agent = load(home.path / "segue.toml", {}).agents[""]
    assert agent == ModelKeys("ollama:llama3.2:3b", f"http://127.0.0.1:{ollama}/v1")


def test_what_is_no_ollama_is_not_taken_for_one(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{silent.getsockname()[1]}")
        assert home.json("init")["found"] == []
    monkeypatch.setenv("OLLAMA_HOST", "http://[broken")
    assert home.segue("init", "--force").exit_code == 0


@pytest.mark.parametrize(
    ("variable", "model"),
    [
        ("ANTHROPIC_API_KEY", "anthropic:"),
        ("OPENAI_API_KEY", "openai:"),
        ("GEMINI_API_KEY", "google:"),
        ("GOOGLE_API_KEY", "google:"),
    ],
)
def test_a_key_in_the_environment_becomes_a_model(
    home: Home, monkeypatch: pytest.MonkeyPatch, variable: str, model: str
) -> None:
    monkeypatch.setenv(variable, KEY)
    assert home.segue("init").exit_code == 0
    agent = load(home.path / "segue.toml", {variable: KEY}).agents[""]
    assert isinstance(agent, ModelKeys)
    assert agent.model.startswith(model)
    assert agent.api_key == Secret(KEY)


def test_a_provider_that_speaks_like_another_is_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    assert 'models of DeepSeek; write model = "openai:NAME" with its base_url' in home.segue("init").stdout
    assert "[agent]" not in (home.path / "segue.toml").read_text()


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


def test_a_program_that_speaks_acp_answers_where_there_is_no_model_and_is_added_beside_one(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = home.path / "codex-acp"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {PROGRAM} {tmp_path}\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{home.path}:/bin:/usr/bin")
    done = home.segue("init")
    assert "Codex answers, and works in this folder as you do" in done.stdout
    assert load(home.path / "segue.toml", {}).agents[""] == AcpKeys(("codex-acp",), folder=tmp_path)
    told = home.segue("doctor")
    assert "program 1; goes on with its sessions after a restart; takes image, files" in told.stdout
    added = home.segue("add", "agent")
    assert added.exit_code == 0, added.output
    assert "/agent codex" in added.stdout
    assert load(home.path / "segue.toml", {}).agents["codex"] == AcpKeys(("codex-acp",), folder=tmp_path)
    assert "it is there already" in home.segue("add", "agent", "codex").output
    assert "There are: codex." in home.segue("add", "agent", "claude").output
    program.write_text("#!/bin/sh\necho no such key >&2\n")
    told = home.segue("doctor")
    assert told.exit_code == 1
    assert "codex-acp is gone: it ended. Its last words: no such key" in told.stdout
