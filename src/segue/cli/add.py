"""`segue add`: asks what a platform needs, checks it live, writes it to segue.toml and sends a first message."""

import asyncio
import os
import re
import shutil
import sys
import textwrap
import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import click
import tomlkit
from tomlkit.items import Array

from segue import plugins
from segue.cli import completes
from segue.cli.output import printable
from segue.cli.service.agents import with_agent
from segue.cli.service.install import install
from segue.cli.terminal.qr import qr
from segue.config import Untrusted, find, load, trust
from segue.config.file import NAME
from segue.config.loading import from_tables
from segue.config.references import References
from segue.core.contracts.setup import Added, FoundOwner, IsAdded, IsScanned, MeetsPeople, SetupQuestion, TellsAgain
from segue.core.lanes import Kind
from segue.core.values import Value
from segue.errors import Disconnected, Invalid, NotInstalled, SegueError, SendError, SendUnsure, Unreachable
from segue.runtime.cancelling import surely

_REFERENCE = ("env:", "file:", "cmd:")
_WORDS = re.compile(r"[^A-Za-z0-9_-]+")


@click.command()
@click.argument("platform", shell_complete=completes("platforms"))
@click.argument("agent", required=False)
@click.option("--account", help="What to call it; else the platform's own name for it.")
@click.option("--owner", help="Your own user id there: whoever has it is the host.")
@click.option("--public", is_flag=True, help="Let everybody talk to the agent there.")
@click.option("--set", "given", multiple=True, metavar="KEY=VALUE", help="Answer a question; a secret by reference.")
@click.option(
    "--wait",
    type=click.IntRange(min=1),
    default=600,
    metavar="SECONDS",
    help="How long to wait for you to write there; 600 unless said.",
)
def command(
    platform: str,
    agent: str | None,
    account: str | None,
    owner: str | None,
    given: tuple[str, ...],
    wait: int,
    *,
    public: bool,
) -> None:
    """Add a platform: ask for its settings, check them live, write segue.toml, and send a first message.

    In scripts, answer every question with --set, and a secret with its location: --set token=env:NAME.

    `segue add agent [NAME]` adds a coding agent that is installed here (claude, codex, gemini, opencode, goose, qwen).
    """
    if platform == "agent":
        text, name = with_agent(agent, file := _file())
        _replace(file, text)
        click.echo(f"Wrote [agents.{name}] to {file}; `/agent {name}` lets it answer in a conversation.")
        return
    if agent is not None:
        raise Invalid("agent", f"{platform} is a platform", "Name nothing after it, or write `segue add agent NAME`.")
    keys = _addable(platform)
    file = _file()
    answers, added = _checked(keys, _given(given), file)
    values = _values(answers)
    click.echo(added.says)
    name = account or _WORDS.sub("_", added.name)[:64]
    references = {key: reference for key, (_, reference) in answers.items() if reference}
    document = _with_room_for(file, platform, name)
    met = None
    if owner is None and not public and (not given or sys.stdin.isatty()):
        if issubclass(keys, MeetsPeople) and added.link:
            met = meet(keys, values, added.link, wait)
            owner = met.user
        else:
            owner = click.prompt("Your own user id there (empty: none)", default="", show_default=False)
    whom = _Whom(owner or "", met.chat if met else "", public)
    _write(document, file, (platform, name), added, references, whom)
    click.echo(f"Wrote [{platform}.{name}] to {file}")
    if met is not None and issubclass(keys, TellsAgain):
        asyncio.run(keys.acknowledge(values, met.cursor))
    if owner:
        click.echo(asyncio.run(_greet(file, platform, name, owner)))
    click.echo("`segue serve` connects it; a gateway that runs already must be started anew.")


class _Whom(Value, frozen=True):
    """The owner of an account, or the public."""

    owner: str
    chat: str
    """The owner's private chat on the platform, if known."""
    public: bool


def _addable(platform: str) -> type[IsAdded]:
    if platform not in plugins.platforms():
        raise Invalid("platform", f'there is no "{platform}" here', f"There are: {', '.join(plugins.platforms())}.")
    try:
        keys = plugins.adapter_keys(platform)
    except NotInstalled as missing:
        install(missing.extra)
        keys = plugins.adapter_keys(platform)
    if not issubclass(keys, IsAdded):
        raise Invalid("platform", f"{platform} can't be added this way", f"Write [{platform}.NAME] into {NAME}.")
    return keys


def _file() -> Path:
    """Return the segue.toml that applies, or the path for a new one."""
    try:
        return find(os.environ, Path.cwd())
    except Untrusted:
        raise
    except Invalid:
        home = os.environ.get("SEGUE_HOME")
        return (Path(home) if home else Path.cwd()) / NAME


def _given(said: tuple[str, ...]) -> dict[str, str]:
    pairs = [one.partition("=") for one in said]
    for key, equals, _ in pairs:
        if not equals:
            raise Invalid("--set", f'"{key}" has no value', "Write KEY=VALUE.")
    return {key: value for key, _, value in pairs}


def _answers(
    questions: tuple[SetupQuestion, ...], given: Mapping[str, str], file: Path, known: Mapping[str, tuple[str, str]]
) -> dict[str, tuple[str, str]]:
    """Return each answer and its reference. Known answers aren't asked again."""
    if unknown := sorted(given.keys() - {question.key for question in questions}):
        there = ", ".join(question.key for question in questions)
        raise Invalid("--set", f"{unknown[0]} isn't asked for", f"There are: {there}.")
    answers = dict(known)
    for question in [one for one in questions if one.key not in known]:
        asked = _is_asked(question, answers)
        answers[question.key] = _answer(question, given, file) if asked else (question.default or "", "")
    return answers


def _is_asked(question: SetupQuestion, answers: Mapping[str, tuple[str, str]]) -> bool:
    key, wanted = question.when
    return not key or answers[key][0] == wanted


def _values(answers: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    return {key: value for key, (value, _) in answers.items()}


def _checked(keys: type[IsAdded], given: Mapping[str, str], file: Path) -> tuple[dict[str, tuple[str, str]], Added]:
    """Return answers that the platform accepts. At a terminal, a mistyped answer is asked for again."""
    answers = _answers(keys.questions(), given, file, {})
    while True:
        try:
            if issubclass(keys, IsScanned):
                answers |= _scanned(keys, answers)
            return answers, asyncio.run(keys.added(_values(answers)))
        except NotInstalled as missing:
            install(missing.extra)
        except (Invalid, Disconnected) as error:
            answers = _answers(keys.questions(), given, file, _kept(error, keys.questions(), given, answers))


def _kept(
    error: Invalid | Disconnected,
    questions: tuple[SetupQuestion, ...],
    given: Mapping[str, str],
    answers: Mapping[str, tuple[str, str]],
) -> Mapping[str, tuple[str, str]]:
    """Return the answers to keep after the platform refused some.

    Raises the error if nobody at a terminal can correct it.
    """
    typed = [question for question in questions if _is_typed(question, given) and _is_asked(question, answers)]
    again = {question.key for question in typed if _may_be_wrong(question, error)}
    if not sys.stdin.isatty() or not (again or (typed and isinstance(error, Disconnected))):
        raise error
    said = f"{str(error).removesuffix('.')}."
    if again:
        click.echo(_wrapped(f"{said} Type it again, or end with Ctrl-C."))
    elif not click.confirm(_wrapped(f"{said} Try again?"), default=True):
        raise error
    others = [question for question in questions if question.key not in again and question.when[0] not in again]
    return {question.key: answers[question.key] for question in others}


def _is_typed(question: SetupQuestion, given: Mapping[str, str]) -> bool:
    return question.key not in given and (not given or question.default is None)


def _may_be_wrong(question: SetupQuestion, error: Invalid | Disconnected) -> bool:
    """Return whether an error may be about this answer. An unreachable platform says nothing about it."""
    if isinstance(error, Invalid):
        return question.key == error.field
    why = error.__cause__
    return question.secret and isinstance(why, SendError) and not isinstance(why, (Unreachable, SendUnsure))


def _scanned(keys: type[IsScanned], answers: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Return the answers of a scanned code. Without a terminal, the code is printed as text."""

    def show(code: str) -> None:
        if sys.stdout.isatty():
            click.echo(qr(code))
        click.echo(f"Scan this code with the phone: {printable(code)}")

    known = _values(answers)
    told = asyncio.run(keys.scanned(known, show))
    return {key: (value, "") for key, value in told.items() if value != known.get(key)}


def _wrapped(text: str) -> str:
    """Wrap lines between words at the terminal's width."""
    width = max(shutil.get_terminal_size().columns - 1, 20)
    lines = textwrap.TextWrapper(width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(map(lines.fill, text.split("\n")))


def _ask(question: SetupQuestion) -> str:
    """Read an answer from a terminal or a pipe."""
    here = sys.stdin.isatty()
    try:
        return str(
            click.prompt(
                _wrapped(question.asks) if here else question.asks,
                default=question.default,
                hide_input=question.secret and here,
                show_default=False,
            )
        )
    except click.Abort as error:
        if here:
            raise
        click.echo()
        what = "env:NAME" if question.secret else "VALUE"
        raise Invalid(question.key, "nobody is here to be asked", f"Use --set {question.key}={what}.") from error


def _answer(question: SetupQuestion, given: Mapping[str, str], file: Path) -> tuple[str, str]:
    said = given.get(question.key)
    if said is None and given and question.default is not None:
        said = question.default
    if said is None:
        said = _ask(question)
    if question.secret and said.startswith(_REFERENCE):
        try:
            return References(os.environ, file.parent).fetch(said).reveal(), said
        except Invalid as error:
            raise Invalid(question.key, error.problem, error.fix) from error
    return said, ""


def _with_room_for(file: Path, platform: str, name: str) -> tomlkit.TOMLDocument:
    """Parse the file; raise `Invalid` if it already has the account."""
    document = tomlkit.parse(file.read_text()) if file.exists() else tomlkit.document()
    if name in document.get(platform, {}):
        raise Invalid(f"{platform}.{name}", "it is there already", "Choose another name with --account.")
    return document


def _write(
    document: tomlkit.TOMLDocument,
    file: Path,
    account: tuple[str, str],
    added: Added,
    references: Mapping[str, str],
    whom: _Whom,
) -> None:
    """Write an account, but only if the resulting file is valid."""
    platform, name = account
    accounts = document.setdefault(platform, tomlkit.table(is_super_table=True))
    table = tomlkit.table()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = []
    try:
        for key, secret in added.secrets.items():
            reference = references.get(key)
            if reference is None:
                kept.append(file.parent / f"{platform}.{name}.{key}")
                _keep(kept[-1], secret.reveal())
                reference = f"file:{kept[-1].name}"
            table[key] = reference
        table.update({key: value for key, value in added.keys.items() if value})
        for key, users in added.users.items():
            if listed := [*dict.fromkeys([*([whom.owner] if whom.owner else []), *users])]:
                table[key] = listed
        if whom.public:
            table["public"] = True
        if whom.chat:
            home = tomlkit.inline_table()
            home.update({"chat": whom.chat, "kind": Kind.DM.value})
            table["home"] = home
        accounts[name] = table
        if whom.owner:
            _own(document, f"{platform}.{name}/{whom.owner}")
        text = tomlkit.dumps(document)
        from_tables(tomllib.loads(text), file.absolute(), os.environ)
        _replace(file, text)
    except BaseException:
        for secret_file in kept:
            secret_file.unlink(missing_ok=True)
        raise


def _own(document: tomlkit.TOMLDocument, identity: str) -> None:
    owners = document.setdefault("owners", tomlkit.array())
    if isinstance(owners, Array) and identity not in owners:
        owners.append(identity)


def _keep(file: Path, secret: str) -> None:
    """Write a secret to a file that nobody else can read at any moment."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
        opened.write(f"{secret}\n")
    file.chmod(0o600)


def _replace(file: Path, text: str) -> None:
    half = file.with_suffix(".half")
    try:
        half.write_text(text)
        half.replace(file)
    except OSError as error:
        raise SegueError(f"{file} can't be written ({error.strerror}). See to its folder.") from error
    trust(file, os.environ)


async def _greet(file: Path, platform: str, name: str, owner: str) -> str:
    config = load(file, os.environ)
    keys = next(account.keys for account in config.accounts if (account.platform, account.name) == (platform, name))
    if not isinstance(keys, IsAdded):
        return ""
    try:
        return await keys.greet(name, owner)
    except (SendError, Disconnected) as error:
        return f"The first message couldn't be sent: {error}"


def meet(keys: type[MeetsPeople], answers: Mapping[str, str], link: str, wait: int) -> FoundOwner:
    """Wait until a person writes and confirms their identity. Raise `SegueError` if nobody does."""
    after = ""
    try:
        click.echo(f"Now open {link} and press Start, or write something there.")
        if sys.stdout.isatty():
            click.echo(qr(link))
        click.echo("Waiting for you there. Ctrl-C ends it.")
        while True:
            met = asyncio.run(_met(keys, answers, after, wait))
            if click.confirm(f"{printable(met.name)} wrote. Is this you?"):
                return met
            click.echo("Then somebody else found it first. Waiting for you there.")
            after = met.cursor
    except TimeoutError as error:
        raise SegueError(f"Nobody wrote there for {wait} seconds. {_ELSE}") from error
    except (KeyboardInterrupt, click.Abort) as error:
        click.echo()
        raise SegueError(_ELSE) from error


_ELSE = "Nothing was written. Run it again, or name your own user id there: --owner ID."


async def _met(keys: type[MeetsPeople], answers: Mapping[str, str], after: str, wait: int) -> FoundOwner:
    async with asyncio.timeout(wait):
        return await surely(partial(keys.meet, answers, after))
