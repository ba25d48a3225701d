from pathlib import Path

import pytest

from segue import plugins
from segue.config import load
from segue.errors import Invalid
from segue.testing import Shelf

IRC = """
from typing import Any

from segue.core.contracts.adapters import Connection
from segue.core.messages import Delivery, Sending
from segue.core.values import Secret
from segue.core.values import Value


class Irc:
    platform = "irc"
    sending = Sending.BLIND
    connection = Connection.ONE

    def __init__(self, account: str, keys: Any) -> None:
        self.account, self.keys = account, keys

    def fits(self, text: str) -> bool:
        return len(text) <= 400

    async def send(self, delivery: Delivery) -> str:
        return "1"


class IrcAccount(Value, frozen=True):
    server: str
    password: Secret | None = None

    def adapter(self, account: str, files: object) -> Irc:
        return Irc(account, self)


class Plain:
    def adapter(self, account: str, files: object) -> Irc:
        return Irc(account, self)


NOTHING = object()
"""


def install(folder: Path, name: str, *entries: str, module: str = IRC) -> None:
    """A package as an installer leaves it."""
    (folder / f"{name}.py").write_text(module)
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("\n".join(entries))


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def test_segues_own_are_found_like_anybody_elses() -> None:
    assert "http" in plugins.platforms()
    assert "builtin" in plugins.agents()
    assert plugins.adapter_keys("http").__name__ == "HttpAccount"


def test_a_platform_of_another_package_is_configured_like_ones_own(packages: Path) -> None:
    install(packages, "segue_irc", "[segue.adapters]", "irc = segue_irc:IrcAccount")
    file = packages / "segue.toml"
    file.write_text('[irc.libera]\nserver = "irc.example.org"\npassword = "env:PASS"\nallow = ["ada"]')
    config = load(file, {"PASS": "hunter2"})
    [account] = config.accounts
    adapter = account.keys.adapter(account.name, Shelf())
    assert (adapter.platform, adapter.account) == ("irc", "libera")
    assert config.secrets[0].reveal() == "hunter2"
    file.write_text('[irc.libera]\nsevrer = "irc.example.org"\npublic = true')
    with pytest.raises(Invalid, match=r"irc\.libera\.sevrer: .* Did you mean server\?"):
        load(file, {})
    file.write_text("[irc.libera]\npublic = true\nserver = 'x'\npassword = 'hunter2'")
    with pytest.raises(Invalid, match=r"irc\.libera\.password: the secret itself"):
        load(file, {})


def test_a_missing_library_is_named_with_its_extra(packages: Path) -> None:
    install(packages, "segue_far", "[segue.adapters]", "far = segue_far:FarAccount", module="import far_away_library")
    with pytest.raises(Invalid, match=r"far: it needs far_away_library, .* Install it, or segue.far anew"):
        plugins.adapter_keys("far")


def test_two_packages_for_one_platform_are_one_too_many(packages: Path) -> None:
    install(packages, "segue_one", "[segue.adapters]", "twin = segue_one:IrcAccount")
    install(packages, "segue_two", "[segue.adapters]", "twin = segue_two:IrcAccount")
    with pytest.raises(Invalid, match="2 packages offer this adapter: segue_one, segue_two"):
        plugins.adapter_keys("twin")


@pytest.mark.parametrize("name", ["NOTHING", "Irc", "Plain"])
def test_what_can_make_no_adapter_is_refused(packages: Path, name: str) -> None:
    install(packages, f"segue_{name.lower()}", "[segue.adapters]", f"odd = segue_{name.lower()}:{name}")
    with pytest.raises(Invalid, match=f"odd: segue_{name.lower()}:{name} can't make an adapter"):
        plugins.adapter_keys("odd")


def test_what_a_package_names_must_be_there(packages: Path) -> None:
    install(packages, "segue_gone", "[segue.agents]", "gone = segue_gone:Gone")
    with pytest.raises(Invalid, match="segue_gone:Gone isn't there"):
        plugins.agent_keys("gone")
