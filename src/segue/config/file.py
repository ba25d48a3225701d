"""Locates segue.toml and the data folder, and reads the file."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs

from segue.config.trust import refuse_untrusted
from segue.errors import Invalid

NAME = "segue.toml"
_MARKS = {b"\xef\xbb\xbf": "a byte order mark", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_WHERE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def find(environ: Mapping[str, str], here: Path) -> Path:
    """Find the segue.toml that applies.

    The order is SEGUE_HOME, the current folder if it is trusted, the user's own file.
    """
    home = environ.get("SEGUE_HOME")
    places = [Path(home)] if home else [here, platformdirs.user_config_path("segue")]
    for place in places:
        if (place / NAME).is_file():
            if not home and place == here:
                refuse_untrusted(place / NAME)
            return place / NAME
    looked = " or ".join(str(place) for place in places)
    raise Invalid(NAME, f"there is none in {looked}", "Write one, or name another file with --config.")


def data_folder(environ: Mapping[str, str]) -> Path:
    """Return the data folder."""
    home = environ.get("SEGUE_HOME")
    return Path(home).absolute() if home else platformdirs.user_data_path("segue")


def read_file(path: Path) -> dict[str, Any]:
    """Read the tables of a file."""
    name = path.name or str(path)
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise Invalid(name, f"{path} doesn't exist", "Write it, or name another file with --config.") from error
    except OSError as error:
        raise Invalid(name, f"it can't be read ({error.strerror})", "See to its permissions.") from error
    for mark, what in _MARKS.items():
        if raw.startswith(mark):
            raise Invalid(name, f"it begins with {what}", "Save it as plain UTF-8, without a byte order mark.")
    try:
        return tomllib.loads(raw.decode())
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Invalid(name, f"line {line} is not UTF-8", "Save it as plain UTF-8.") from error
    except RecursionError as error:
        raise Invalid(name, "its brackets are nested too deeply", "Close them.") from error
    except tomllib.TOMLDecodeError as error:
        raise _explained(name, str(error), raw.strip().count(b"\n") + 1) from error


def _explained(name: str, said: str, last: int) -> Invalid:
    """Explain a mistake in the TOML syntax."""
    where = _WHERE.search(said)
    line = f"line {where[1] if where and where[1] else last}"
    what = said[: where.start()] if where else said
    if "twice" in what or "overwrite" in what or "mutate" in what:
        keys = re.findall(r"'([^']*)'", what)
        return Invalid(".".join(keys) or name, f"{line} says what was said before", "Keep one of the two.")
    return Invalid(name, f"{line} is not TOML: {what[:1].lower()}{what[1:]}", "Put texts in quotes, one key a line.")
