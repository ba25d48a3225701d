"""An environment for the peers, apart from Segue's: in the cache folder, installed from requirements/peers.txt once."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from bench.skipped import Skipped

ROOT = Path(__file__).parent.parent.parent
_PINS = ROOT / "requirements" / "peers.txt"
_PATIENCE = 600


def python() -> Path:
    """The interpreter that has the peers."""
    pins = _PINS.read_bytes()
    name = hashlib.sha256(pins + sys.version.encode()).hexdigest()[:12]
    folder = _cache() / "peers" / name
    interpreter, done = folder / "bin" / "python", folder / "installed"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _run(sys.executable, "-m", "venv", str(folder))
        options = ("--disable-pip-version-check", "-qq", "install", "--require-hashes", "--only-binary", ":all:")
        _run(str(interpreter), "-m", "pip", *options, "-r", str(_PINS))
        done.touch()
    return interpreter


def _cache() -> Path:
    own = os.environ.get("SEGUE_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "segue"


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_PATIENCE)
    except subprocess.CalledProcessError as error:
        last = error.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise Skipped(f"the peers can't be installed: {last[0]}") from error
    except subprocess.TimeoutExpired as error:
        raise Skipped(f"the peers weren't installed within {_PATIENCE} s") from error
