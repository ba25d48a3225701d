"""Secrets by reference: the file names the location of a secret, never its value."""

import shlex
import subprocess
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from segue.core.values import LEFT, Secret
from segue.errors import Invalid

_SLOWEST = 30
"""The longest time for a command, in seconds. A person may have to touch a security key."""
_FIX = 'Keep it elsewhere and say where: "env:NAME", "file:PATH" or "cmd:COMMAND".'


class Fetch(Enum):
    """The secrets that a command needs."""

    ALL = "all that the file refers to"
    STORE = "the database's own, for commands that only look into it"


class References:
    """Fetches secrets by reference and remembers them for redaction."""

    def __init__(self, environ: Mapping[str, str], folder: Path, fetch: Fetch = Fetch.ALL) -> None:
        self._environ = environ
        self._folder = folder
        self._fetch = fetch
        self.fetched: list[Secret] = []

    def fetch(self, reference: object, needed_for: Fetch = Fetch.ALL) -> Secret:
        """Fetch the secret of a reference; errors leave the field name to the caller.

        If the command doesn't need the secret, nothing is run or read.
        """
        if not isinstance(reference, str) or not reference.strip():
            raise Invalid("", "it is blank" if reference == "" else "it is not a reference", _FIX)
        kind, colon, name = reference.partition(":")
        read = {"env": self._env, "file": self._file, "cmd": self._cmd}.get(kind)
        if not colon or read is None:
            raise Invalid("", "the secret itself is in the file", _FIX)
        if not name.strip():
            raise Invalid("", f"nothing follows {kind}:", _FIX)
        if needed_for is Fetch.ALL and self._fetch is Fetch.STORE:
            return LEFT
        secret = Secret(read(name.strip()))
        self.fetched.append(secret)
        return secret

    def path(self, written: object) -> Path:
        """Return the path of a file, relative to the folder of segue.toml."""
        if not isinstance(written, str) or not written.strip():
            raise Invalid("", "it is blank" if written == "" else "it is not a path", "Name a file, in quotes.")
        return self._folder / Path(written).expanduser()

    def _env(self, name: str) -> str:
        value = self._environ.get(name)
        if value is None:
            raise Invalid("", f"the variable {name} isn't set", f"Set it: export {name}=...")
        return _filled(value, f"the variable {name}")

    def _file(self, name: str) -> str:
        path = self._folder / Path(name).expanduser()
        try:
            value = path.read_text()
        except OSError as error:
            raise Invalid("", f"{path} can't be read ({error.strerror})", "Write the secret to it.") from error
        except UnicodeDecodeError as error:
            raise Invalid("", f"{path} is not UTF-8 text", "Write the secret to it as text.") from error
        return _filled(value, str(path))

    def _cmd(self, command: str) -> str:
        fix = "Run it yourself to see why."
        try:
            words = shlex.split(command)
            # The host's own file says what to run; no shell reads it.
            done = subprocess.run(words, capture_output=True, text=True, timeout=_SLOWEST, check=True)  # noqa: S603
        except ValueError as error:
            raise Invalid("", "its command has an open quote, or says what isn't UTF-8", fix) from error
        except OSError as error:
            raise Invalid("", f"its command can't be run ({error.strerror})", fix) from error
        except subprocess.CalledProcessError as error:
            raise Invalid("", f"its command ended with {error.returncode}", fix) from error
        except subprocess.TimeoutExpired as error:
            raise Invalid("", f"its command took longer than {_SLOWEST} seconds", fix) from error
        return _filled(done.stdout, "what its command printed")


def _filled(value: str, where: str) -> str:
    """Return a secret without the line ending that editors and commands add. Refuse an empty one."""
    value = value.rstrip("\r\n")
    if not value.strip():
        raise Invalid("", f"{where} is blank", "Put the secret there.")
    return value
