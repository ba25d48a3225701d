import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
RUN = PROJECT["project"]["dependencies"]
GROUPS = PROJECT["dependency-groups"]


@pytest.mark.parametrize(
    ("file", "declared"),
    [
        ("run.txt", RUN + GROUPS["build"]),
        ("test.txt", [*RUN, *chain(*EXTRAS.values())] + GROUPS["build"] + GROUPS["test"] + GROUPS["check"]),
        ("pins.txt", GROUPS["pins"]),
        ("peers.txt", GROUPS["peers"]),
        ("libraries.txt", GROUPS["libraries"]),
        ("examples.txt", GROUPS["examples"]),
        *((f"{extra}.txt", RUN + libraries) for extra, libraries in EXTRAS.items()),
    ],
    ids=["run", "test", "pins", "peers", "libraries", "examples", *EXTRAS],
)
def test_what_is_declared_is_pinned(file: str, declared: list[str]) -> None:
    pins = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / "requirements" / file).read_text(), re.MULTILINE))
    for requirement in map(Requirement, declared):
        pin = pins.get(canonicalize_name(requirement.name))
        assert pin, f"{requirement.name} is not in {file}: run `make pins`"
        assert requirement.specifier.contains(pin), f"{file} has {requirement.name} {pin}: run `make pins`"


@pytest.mark.parametrize("file", sorted((ROOT / "requirements").iterdir()), ids=lambda file: file.name)
def test_pins_name_no_registry(file: Path) -> None:
    assert not re.findall(r"://|--\w*index|--find-links", file.read_text())
