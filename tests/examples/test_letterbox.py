"""A package of somebody else's: installed, it is found, configured, and keeps the contracts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LETTERBOX = ROOT / "examples" / "letterbox"
CONFIG = """
[agent]
kind = "shouting"
marks = 3

[letterbox.home]
folder = "box"
public = true
"""
LOOK = """
import json, sys
from pathlib import Path
from segue import plugins
from segue.config import load
from segue.testing import Shelf

config = load(Path(sys.argv[1]), {})
print(json.dumps({
    "platforms": plugins.platforms(),
    "agents": plugins.agents(),
    "adapter": type(config.accounts[0].keys.adapter("home", Shelf())).__name__,
    "agent": type(config.agents[""].agent()).__name__,
}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process that has the package installed."""
    target = tmp_path_factory.mktemp("site")
    # Built from a copy, so that nothing is left behind in the example.
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "segue_letterbox.py"):
        (source / name).write_text((LETTERBOX / name).read_text())
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index"]
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--target", str(target), str(source)], check=True)
    return {**os.environ, "PYTHONPATH": str(target)}


def test_it_is_found_and_configured(installed: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "segue.toml").write_text(CONFIG)
    command = [sys.executable, "-c", LOOK, str(tmp_path / "segue.toml")]
    out = subprocess.run(command, env=installed, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    found = json.loads(out)
    assert "letterbox" in found["platforms"]
    assert "shouting" in found["agents"]
    assert (found["adapter"], found["agent"]) == ("Letterbox", "Shouting")


def test_it_keeps_the_contracts(installed: dict[str, str], tmp_path: Path) -> None:
    # Beside the tests there is only what was installed.
    for name in ("pyproject.toml", "test_letterbox.py"):
        (tmp_path / name).write_text((LETTERBOX / name).read_text())
    # Nor a plugin of another library, which this environment has.
    tests = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:simcord"]
    done = subprocess.run(tests, env=installed, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
