"""`segue init`: finds the agents on this machine and writes a short segue.toml."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import click

from segue.agents.acp.programs import KnownProgram, installed
from segue.cli.output import json_option, print_json
from segue.cli.service.agents import agent_table
from segue.cli.service.install import install
from segue.config.file import NAME
from segue.config.trust import trust
from segue.core.values import Value
from segue.errors import Invalid, SegueError

_MODELS = {
    "ANTHROPIC_API_KEY": ("models of Anthropic", "anthropic:claude-sonnet-4-6"),
    "OPENAI_API_KEY": ("models of OpenAI", "openai:gpt-5"),
    "GEMINI_API_KEY": ("models of Google", "google:gemini-2.5-flash"),
    "GOOGLE_API_KEY": ("models of Google", "google:gemini-2.5-flash"),
}
"""The variables with a provider's key, each with a first model."""
_COMPATIBLE = {
    "DEEPSEEK_API_KEY": "models of DeepSeek",
    "MISTRAL_API_KEY": "models of Mistral",
    "OPENROUTER_API_KEY": "models by OpenRouter",
}
"""The variables of providers that are compatible with OpenAI's API, at addresses of their own."""
_OLLAMA = "127.0.0.1:11434"
_NAME = re.compile(r"[\w./:-]{1,200}")
"""A model's name that needs no escaping between quotes."""
_HEAD = "# Segue's settings. Only what differs from the defaults is written here; `segue doctor` checks it.\n"
_BUILTIN = "# The built-in agent answers: it needs no model and no network.\n"
_ALSO = "# Found here too:\n"
_LARGEST_ANSWER = 1024 * 1024


class FoundAgent(Value, frozen=True):
    """An agent, or something from which an agent can be made."""

    what: str
    offers: str
    model: str = ""
    """The value of `model`, if Segue can use it directly."""
    key: str = ""
    """The reference to its key."""
    base_url: str = ""
    """Its address, unless it is the usual one."""
    program: KnownProgram | None = None
    """The program that answers, if it is a program."""


@click.command()
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@json_option
def command(*, force: bool, as_json: bool) -> None:
    """Find the agents you already have and write a short segue.toml.

    The file goes to SEGUE_HOME if that is set, else to this folder. It contains the locations of secrets; `segue init`
    reads no secret.
    """
    found = [*_keys(os.environ), *_ollama(os.environ), *_programs(os.environ)]
    home = os.environ.get("SEGUE_HOME")
    file = (Path(home) if home else Path.cwd()) / NAME
    _write(file, text_of(found, file), "w" if force else "x")
    trust(file, os.environ)
    if as_json:
        print_json({"file": str(file), "found": found})
        return
    click.echo(f"Wrote {file}")
    used = _used(found)
    for one in found:
        answers = one is used and one.program is not None
        click.echo(f"Found {one.what}{'' if answers else f': {one.offers}'}")
    if used is not None and used.program is not None:
        click.echo(f"{used.program.title} answers, and works in this folder as you do; see docs/acp.md.")
        if find_spec("acp") is None:
            install("acp")
    elif used is not None:
        click.echo(f"{used.model} answers; change `model` in the file for another.")
        if find_spec("pydantic_ai") is None:
            install("model")
    else:
        click.echo("The built-in agent answers; with a key such as ANTHROPIC_API_KEY, or an Ollama, a model would.")
    click.echo("Talk with `segue`, or keep a gateway running with `segue serve`.")


def text_of(found: list[FoundAgent], file: Path) -> str:
    """Return the file's text.

    The first model found becomes the agent, else the first program. The others are comments.
    """
    used = _used(found)
    lines = "".join(f"#   {one.what}: {one.offers}\n" for one in found if one is not used)
    also = f"{_ALSO}{lines}" if lines else ""
    if used is None:
        return f"{_HEAD}{_BUILTIN}{also}"
    if used.program is not None:
        return f"{_HEAD}{also}\n[agent]\n{agent_table(used.program, file).as_string()}"
    keys = {"kind": "model", "model": used.model, "api_key": used.key, "base_url": used.base_url}
    table = "".join(f'{key} = "{value}"\n' for key, value in keys.items() if value)
    return f"{_HEAD}{also}\n[agent]\n{table}"


def _used(found: list[FoundAgent]) -> FoundAgent | None:
    """Return the found agent to use."""
    models, programs = [one for one in found if one.model], [one for one in found if one.program is not None]
    return next(iter([*models, *programs]), None)


def _keys(environ: Mapping[str, str]) -> Iterator[FoundAgent]:
    for name, (offers, model) in _MODELS.items():
        if environ.get(name, "").strip():
            yield FoundAgent(f'"env:{name}"', offers, model, f"env:{name}")
    for name, offers in _COMPATIBLE.items():
        if environ.get(name, "").strip():
            yield FoundAgent(f'"env:{name}"', f'{offers}; write model = "openai:NAME" with its base_url')


def _ollama(environ: Mapping[str, str]) -> Iterator[FoundAgent]:
    said = environ.get("OLLAMA_HOST", "").strip() or _OLLAMA
    try:
        parts = urlsplit(said if "://" in said else f"http://{said}")
        host, port = parts.hostname or "127.0.0.1", parts.port or 11434
    except ValueError:
        return
    # Ask only this machine: the user of `init` didn't ask for calls to others.
    if host not in ("127.0.0.1", "localhost", "0.0.0.0"):  # noqa: S104 -- a name for this machine here
        return
    try:
        names = _ollama_models(port)
    except (OSError, HTTPException, ValueError, LookupError, TypeError):
        return
    where = f"Ollama at 127.0.0.1:{port}"
    address = "" if port == 11434 else f"http://127.0.0.1:{port}/v1"
    yield FoundAgent(where, f"models on this machine: {', '.join(names)}", f"ollama:{names[0]}", base_url=address)


def _ollama_models(port: int) -> list[str]:
    """Return an Ollama's models; raise if this isn't an Ollama, or has none."""
    connection = HTTPConnection("127.0.0.1", port, timeout=1.0)
    try:
        connection.request("GET", "/api/tags")
        answer = json.loads(connection.getresponse().read(_LARGEST_ANSWER))
    finally:
        connection.close()
    known = [name for model in answer["models"] if _NAME.fullmatch(name := str(model["name"]))]
    # Embedding models can't answer.
    names = [name for name in known if "embed" not in name]
    if not names:
        raise LookupError("it has none")
    return names


def _programs(environ: Mapping[str, str]) -> Iterator[FoundAgent]:
    for program, file in installed(environ.get("PATH", "")):
        yield FoundAgent(file, f"{program.title}; `segue add agent {program.name}` adds it", program=program)


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
