"""`segue init`: finds what agents are here already and writes a short segue.toml."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import click

from segue.cli.showing import json_option, print_json
from segue.config.file import NAME
from segue.core.values import Value
from segue.errors import Invalid, SegueError

_KEYS = {
    "ANTHROPIC_API_KEY": "models of Anthropic",
    "DEEPSEEK_API_KEY": "models of DeepSeek",
    "GEMINI_API_KEY": "models of Google",
    "MISTRAL_API_KEY": "models of Mistral",
    "OPENAI_API_KEY": "models of OpenAI",
    "OPENROUTER_API_KEY": "models by OpenRouter",
}
_PROGRAMS = {
    "claude-code-acp": "Claude Code",
    "codex-acp": "Codex",
    "gemini": "Gemini CLI",
    "goose": "Goose",
    "opencode": "OpenCode",
    "qwen": "Qwen Code",
}
"""Programs that speak the Agent Client Protocol."""
_OLLAMA = "127.0.0.1:11434"
_HEAD = """\
# Segue's settings. Only what differs from the defaults is written here; `segue doctor` checks it.
# The built-in agent answers: it needs no model and no network.
"""


class Found(Value, frozen=True):
    """An agent, or what one could be made of."""

    what: str
    offers: str


@click.command()
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@json_option
def command(*, force: bool, as_json: bool) -> None:
    """Find what agents you already have and write a short segue.toml.

    It goes to SEGUE_HOME if that is set, else to this folder. No secret is read or written, only where it is.
    """
    found = [*_keys(os.environ), *_ollama(os.environ), *_programs(os.environ)]
    home = os.environ.get("SEGUE_HOME")
    file = (Path(home) if home else Path.cwd()) / NAME
    _write(file, text_of(found), "w" if force else "x")
    if as_json:
        print_json({"file": str(file), "found": found})
        return
    click.echo(f"Wrote {file}")
    for one in found:
        click.echo(f"Found {one.what}: {one.offers}")
    click.echo("Talk with `segue`, or keep a gateway running with `segue serve`.")


def text_of(found: list[Found]) -> str:
    """The file: nothing that was found can be used yet, so all of it is comments."""
    if not found:
        return _HEAD
    lines = "".join(f"#   {one.what}: {one.offers}\n" for one in found)
    return f"{_HEAD}# Found here, and of use once Segue has agents of these kinds:\n{lines}"


def _keys(environ: Mapping[str, str]) -> Iterator[Found]:
    for name, offers in _KEYS.items():
        if environ.get(name, "").strip():
            yield Found(f'"env:{name}"', offers)


def _ollama(environ: Mapping[str, str]) -> Iterator[Found]:
    said = environ.get("OLLAMA_HOST", "").strip() or _OLLAMA
    try:
        parts = urlsplit(said if "://" in said else f"http://{said}")
        host, port = parts.hostname or "127.0.0.1", parts.port or 11434
        # Only this machine is asked: whoever runs `init` didn't ask us to call another.
        if host in ("127.0.0.1", "localhost", "0.0.0.0"):  # noqa: S104 -- a name for this machine here
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
            yield Found(f"Ollama at 127.0.0.1:{port}", "models on this machine")
    except (OSError, ValueError):
        return


def _programs(environ: Mapping[str, str]) -> Iterator[Found]:
    for name, agent in _PROGRAMS.items():
        if path := shutil.which(name, path=environ.get("PATH", "")):
            yield Found(path, f"{agent}, by the Agent Client Protocol")


def _write(file: Path, text: str, how: str) -> None:
    if how == "x" and file.exists():
        raise Invalid(NAME, f"{file} is there already", "Replace it with --force, or edit it.")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file.open(how, encoding="utf-8") as opened:
            opened.write(text)
    except OSError as error:
        raise SegueError(
            f"{file} can't be written ({error.strerror}). See to its folder, or set SEGUE_HOME."
        ) from error
