"""`segue add agent`: finds a program that speaks ACP, tests it and writes its table."""

import asyncio
import os
import tomllib
from importlib.util import find_spec
from pathlib import Path

import click
import tomlkit

from segue.agents.acp.keys import AcpKeys
from segue.agents.acp.programs import KNOWN, KnownProgram, installed
from segue.cli.service.install import install
from segue.config.loading import from_tables
from segue.errors import Invalid


def agent_table(program: KnownProgram, file: Path) -> tomlkit.items.Table:
    """Return the table of a program that works in the current folder; `file` is the segue.toml to write."""
    table, here = tomlkit.table(), Path.cwd()
    near = here == file.parent.absolute()
    table.update({"kind": "acp", "command": list(program.command), "folder": "." if near else str(here)})
    return table


def with_agent(name: str | None, file: Path) -> tuple[str, str]:
    """Return segue.toml with a program's table, and the program's name. Raise `Invalid` if there is no program."""
    program = _found(name)
    document = tomlkit.parse(file.read_text()) if file.exists() else tomlkit.document()
    agents = document.setdefault("agents", tomlkit.table(is_super_table=True))
    if program.name in agents:
        raise Invalid(f"agents.{program.name}", "it is there already", "Change it in the file.")
    if find_spec("acp") is None:
        install("acp")
    click.echo(asyncio.run(AcpKeys(program.command, folder=Path.cwd()).started()))
    agents[program.name] = agent_table(program, file)
    text = tomlkit.dumps(document)
    from_tables(tomllib.loads(text), file.absolute(), os.environ)
    return text, program.name


def _found(name: str | None) -> KnownProgram:
    here = {program.name: program for program, _ in installed(os.environ.get("PATH", ""))}
    known = ", ".join(dict.fromkeys(program.name for program in KNOWN))
    if not here:
        fix = f"Install one of {known}, or write its table by hand: docs/acp.md has it."
        raise Invalid("agent", "no program that speaks ACP is here", fix)
    if name is None and len(here) > 1:
        raise Invalid("agent", "there are several", f"Name one: {', '.join(here)}.")
    if name is not None and name not in here:
        raise Invalid("agent", f'there is no "{name}" here', f"There are: {', '.join(here)}.")
    return here[name] if name is not None else next(iter(here.values()))
