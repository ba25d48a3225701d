"""A segue.toml of the current folder counts only once it is trusted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from segue.config import Untrusted, find, trust


@pytest.fixture
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of somebody else's, and a user without any."""
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "user"))
    here = tmp_path / "here"
    here.mkdir()
    (here / "segue.toml").write_text('[agent]\nkind = "builtin"\n')
    return here


def test_a_file_counts_once_it_is_trusted_and_until_it_is_changed(apart: Path) -> None:
    with pytest.raises(Untrusted, match=r"isn't trusted yet .*`segue trust`"):
        find({}, apart)
    trust(apart / "segue.toml", {})
    assert find({}, apart) == apart / "segue.toml"
    (apart / "segue.toml").write_text('[agent]\nkind = "model"\n')
    with pytest.raises(Untrusted, match="has changed since you trusted it"):
        find({}, apart)


def test_the_same_file_elsewhere_is_another(apart: Path, tmp_path: Path) -> None:
    trust(apart / "segue.toml", {})
    (tmp_path / "segue.toml").write_bytes((apart / "segue.toml").read_bytes())
    with pytest.raises(Untrusted):
        find({}, tmp_path)


def test_the_hosts_own_places_need_no_trust(apart: Path) -> None:
    assert find({"SEGUE_HOME": str(apart)}, apart / "elsewhere") == apart / "segue.toml"
    assert find({"SEGUE_HOME": str(apart)}, apart) == apart / "segue.toml"


def test_a_folder_of_somebody_elses_runs_nothing(apart: Path) -> None:
    ran = apart / "ran"
    secret = f"cmd:sh -c 'touch {ran}; echo s3cret'"
    account = f'[http.alpha]\nsecret = "{secret}"\ncallback = "http://127.0.0.1:9/"\npublic = true\n'
    (apart / "segue.toml").write_text(account)
    environ = {name: value for name, value in os.environ.items() if name != "SEGUE_HOME"}

    def segue(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "segue", *arguments]
        return subprocess.run(command, cwd=apart, env=environ, capture_output=True, text=True, check=False)

    for arguments in (["sessions", "list"], ["doctor"], ["lanes"], ["chat", "-m", "hi"], ["serve", "--port", "0"]):
        done = segue(*arguments)
        assert done.returncode != 0, arguments
        assert "segue trust" in done.stdout + done.stderr, arguments
    assert not ran.exists()
    assert segue("trust").returncode == 0
    assert segue("sessions", "list").returncode == 0
    assert not ran.exists(), "whoever only looks needs no secret"
    segue("doctor")
    assert ran.exists()
