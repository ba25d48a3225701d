"""The name of the machine's time zone."""

import os
from pathlib import Path

from segue.core.resets import time_zone
from segue.errors import Invalid

_FOLDER = "zoneinfo/"
_UTC = "UTC"


def machine_zone(etc: Path = Path("/etc")) -> str:
    """Return the zone in TZ, else that of the machine's clock, else UTC."""
    for name in (os.environ.get("TZ", "").removeprefix(":"), _linked(etc / "localtime"), _written(etc / "timezone")):
        _, _, zone = f"{_FOLDER}{name}".rpartition(_FOLDER)
        if zone and _known(zone):
            return _UTC if zone == "Etc/UTC" else zone
    return _UTC


def _linked(clock: Path) -> str:
    return str(clock.readlink()) if clock.is_symlink() else ""


def _written(file: Path) -> str:
    return file.read_text("utf-8", "replace").strip() if file.is_file() else ""


def _known(zone: str) -> bool:
    try:
        time_zone(zone)
    except Invalid:
        return False
    return True
