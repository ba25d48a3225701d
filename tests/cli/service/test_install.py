"""`segue install`: what an extra needs, from the pins of a clone."""

import sys
import tomllib
from pathlib import Path

import pytest

from segue.cli.service import install as module
from segue.errors import NotInstalled
from segue.plugins import adapter_keys
from tests.cli.conftest import Home

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"


def test_an_extra_is_installed_by_its_pins(home: Home) -> None:
    done = home.segue("install", "postgres")
    assert (done.exit_code, done.stderr) == (0, "Installing what postgres needs\n")


def test_an_extra_that_is_none_is_answered_with_those_there_are(home: Home) -> None:
    done = home.segue("install", "carrier-pigeon")
    assert done.exit_code == 2
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    assert f'there is no "carrier-pigeon". There are: {", ".join(sorted(extras))}.' in done.stderr


def test_outside_a_clone_the_libraries_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "_PINS", tmp_path)
    assert module._wanted("postgres") == ["asyncpg>=0.32"]


def test_a_platform_without_its_library_says_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if "segue.adapters.matrix" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "segue.adapters.matrix.account", None)
    with pytest.raises(NotInstalled) as missing:
        adapter_keys("matrix")
    assert str(missing.value).endswith("which isn't installed. Run `segue install matrix`.")
    assert missing.value.extra == "matrix"
