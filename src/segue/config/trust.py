"""Trust: a segue.toml in the current folder counts once its user has looked at it.

Law: a file in somebody else's folder can run commands for its secrets and send keys elsewhere. So trust belongs to a
path and its content; a change ends it. Files in SEGUE_HOME and files named by option need no trust.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import platformdirs

from segue.errors import Invalid, SegueError

_KEPT = "trusted.json"


class Untrusted(Invalid):
    """A segue.toml in the current folder that its user hasn't trusted."""


def trust(file: Path, environ: Mapping[str, str]) -> None:
    """Trust a file as it is now."""
    if environ.get("SEGUE_HOME"):
        return
    kept = _trusted() | {str(file.absolute()): _digest(file)}
    folder = platformdirs.user_data_path("segue")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        half = folder / f"{_KEPT}.half"
        half.write_text(json.dumps(kept, indent=1))
        half.chmod(0o600)
        half.replace(folder / _KEPT)
    except OSError as error:
        raise SegueError(f"{folder / _KEPT} can't be written ({error.strerror}). See to that folder.") from error


def refuse_untrusted(file: Path) -> None:
    """Raise `Untrusted` unless the file's present content is trusted."""
    known = _trusted().get(str(file.absolute()))
    if known != _digest(file):
        problem = "it isn't trusted yet" if known is None else "it has changed since you trusted it"
        raise Untrusted(file.name, f"{problem} ({file.absolute()})", "Look at it, then run `segue trust`.")


def _trusted() -> dict[str, str]:
    """Return the digest of each trusted file, by its path."""
    try:
        read = json.loads((platformdirs.user_data_path("segue") / _KEPT).read_text())
    except (OSError, ValueError):
        return {}
    return {str(path): str(digest) for path, digest in read.items()} if isinstance(read, dict) else {}


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise Invalid(file.name, f"{file} can't be read ({error.strerror})", "See to its permissions.") from error
