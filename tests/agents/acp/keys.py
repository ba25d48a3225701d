"""The keys of the ACP agent for tests."""

import sys
from pathlib import Path

from segue.agents.acp.keys import AcpKeys


def program(folder: Path, *more: str, **keys: object) -> AcpKeys:
    """A program that works, and keeps its sessions, in a folder."""
    command = (sys.executable, str(Path(__file__).parent / "program.py"), str(folder), *more)
    return AcpKeys(command, folder=folder, **keys)  # type: ignore[arg-type]
