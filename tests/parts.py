"""The parts that tests need beside Python, such as PostgreSQL and Chromium, and what happens where one is missing.

A test that needs a missing part is skipped, by the name of the part. In continuous integration, where CI is set, the
part's own test in `test_parts.py` fails; SEGUE_WITHOUT=chromium,nginx names what a machine can't have.
"""

import enum
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pytest

_WITHOUT = "SEGUE_WITHOUT"


class Part(enum.Enum):
    """A part, and its name in SEGUE_WITHOUT."""

    POSTGRESQL = "postgresql"
    NODE = "node"
    CHROMIUM = "chromium"
    NGINX = "nginx"
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    CRABLINE = "crabline"
    """The servers from npm: crabline and aimock."""
    LOCAL_SLACK = "local-slack"
    BAILEYS = "baileys"
    SYNAPSE = "synapse"
    MAUTRIX = "mautrix"
    LIBRARIES = "libraries"
    """Other libraries for agents."""
    HARNESSES = "harnesses"
    """ACP agents and clients that others wrote."""
    OPENCODE = "opencode"
    ACP_EXAMPLES = "acp-examples"


def left_out(environ: Mapping[str, str] = os.environ) -> set[Part]:
    """The parts that a machine can't have; raises `ValueError` for a name that is none."""
    names = [name for name in environ.get(_WITHOUT, "").replace(" ", "").split(",") if name]
    known = {part.value: part for part in Part}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"{_WITHOUT}: there is no part {unknown[0]!r}. The parts are {', '.join(known)}.")
    return {known[name] for name in names}


def is_wanted(part: Part, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a missing part is a failure: in continuous integration, unless the machine can't have it."""
    return environ.get("CI", "").lower() in {"1", "true"} and part not in left_out(environ)


def lack(part: Part, why: str) -> NoReturn:
    """Skip the test for want of a part."""
    pytest.skip(f"without {part.value}: {why}")


def require(part: Part, *, found: bool = True, why: str = "") -> None:
    """Skip the test unless a part was found on this machine."""
    if part in left_out():
        lack(part, f"{_WITHOUT} names it")
    if not found:
        lack(part, why)


def program(part: Part, *names: str, beside: str = "") -> str:
    """A program of one of these names, or of the part's own, perhaps from folders beside those of PATH."""
    places = os.pathsep.join(filter(None, [os.environ.get("PATH", os.defpath), beside]))
    found = [there for name in names or (part.value,) if (there := shutil.which(name, path=places))]
    require(part, found=bool(found), why=f"install the package {part.value}")
    return found[0]


def nginx() -> str:
    """Nginx, which `make` unpacks into the cache where nobody installed it."""
    return program(Part.NGINX, beside=os.pathsep.join(["/usr/sbin", "/usr/local/sbin", f"{cache()}/nginx/usr/sbin"]))


def chromium() -> str:
    """Chromium, under one of its names."""
    return program(Part.CHROMIUM, "chromium", "chromium-browser", "google-chrome")


def cache() -> Path:
    """Where what is heavy and shared by all clones is kept."""
    if given := os.environ.get("SEGUE_CACHE"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "segue"


def missing(report: pytest.TestReport) -> str:
    """What the closing line says of a test that was skipped for want of a part, such as "without nginx"."""
    reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
    name = reason.removeprefix("Skipped: ").partition(":")[0]
    return name if name in {f"without {part.value}" for part in Part} else ""
