"""`segue install`: installs the libraries of an extra."""

import subprocess
import sys
from importlib import invalidate_caches
from importlib.metadata import metadata, requires
from importlib.util import find_spec
from pathlib import Path

import click

import segue
from segue.adapters.whatsapp import bridge
from segue.cli import completes
from segue.errors import Invalid, SegueError

_PINS = Path(segue.__file__).parents[2] / "requirements"
"""Pinned versions with hashes, which only a clone of the repository has."""


@click.command()
@click.argument("extras", nargs=-1, required=True, metavar="EXTRA...", shell_complete=completes("extras"))
def command(extras: tuple[str, ...]) -> None:
    """Install the libraries of an extra: model, postgres, otel, discord, feishu, matrix, whatsapp, acp or mcp."""
    for extra in extras:
        install(extra)


def offered_extras() -> list[str]:
    """List the extras of this version."""
    return metadata("segue").get_all("Provides-Extra") or []


def install(extra: str) -> None:
    """Install an extra's libraries in this environment. In a clone, install the pinned versions by hash."""
    offered = offered_extras()
    if extra not in offered:
        raise Invalid("extra", f'there is no "{extra}"', f"There are: {', '.join(sorted(offered))}.")
    wanted = _wanted(extra)
    if find_spec("pip") is None:
        raise Invalid("pip", "this environment has none", f"Install with what made it: {' '.join(wanted)}")
    click.echo(f"Installing what {extra} needs", err=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    if subprocess.run([*pip, *wanted], check=False).returncode:  # noqa: S603 -- its arguments are our own
        raise SegueError(f"{extra}: pip couldn't install it; the lines above say why. Mend that and try again.")
    invalidate_caches()
    if extra == "whatsapp":
        bridge.fetch()


def _wanted(extra: str) -> list[str]:
    pins = _PINS / f"{extra}.txt"
    if pins.is_file():
        return ["--require-hashes", "--only-binary", ":all:", "-r", str(pins)]
    declared = (requirement.partition(";") for requirement in requires("segue") or [])
    return [name.strip() for name, _, when in declared if f"'{extra}'" in when or f'"{extra}"' in when]
