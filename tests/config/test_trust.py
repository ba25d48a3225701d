"""A segue.toml of the current folder counts only once it is trusted."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from segue.cli.main import main
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


def test_a_folder_of_somebody_elses_runs_nothing(apart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = apart / "ran"
    secret = f"cmd:sh -c 'touch {ran}; echo s3cret'"
    account = f'[http.alpha]\nsecret = "{secret}"\ncallback = "http://127.0.0.1:9/"\npublic = true\n'
    (apart / "segue.toml").write_text(account)
    monkeypatch.delenv("SEGUE_HOME", raising=False)
    monkeypatch.chdir(apart)

    def segue(*arguments: str) -> Result:
        return CliRunner().invoke(main, arguments)

    for arguments in (["sessions", "list"], ["doctor"], ["lanes"], ["chat", "-m", "hi"], ["serve", "--port", "0"]):
        done = segue(*arguments)
        assert done.exit_code != 0, arguments
        assert "segue trust" in done.output, arguments
    assert not ran.exists()
    assert segue("trust").exit_code == 0
    assert segue("sessions", "list").exit_code == 0
    assert not ran.exists(), "whoever only looks needs no secret"
    segue("doctor")
    assert ran.exists()
