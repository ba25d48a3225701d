"""Completion: the script that `segue completion` prints, asked in real shells, and silence where nothing is there."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from segue.changes.exchange import letters
from segue.core.lanes import Person
from segue.store import Store
from tests import parts
from tests.cli.conftest import Home
from tests.cli.test_sessions import begin

SEGUE = f"""#!/bin/sh
exec {sys.executable} -c "from segue.cli.main import main; main(prog_name='segue')" "$@"
"""
BASH = r"""
eval "$(segue completion bash)"
complete -p segue >/dev/null || exit 1
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_segue_completion segue
printf '%s\n' "${COMPREPLY[@]}"
"""
ZSH = r"""
autoload -Uz compinit; compinit -D
_describe() { print -rl -- "${(P@)3}" }
eval "$(segue completion zsh)"
words=("$@"); CURRENT=$#
$_comps[segue]
"""
FISH = r"""
segue completion fish | source
complete -C "$argv"
"""


async def _talk(store: Store, host: Person) -> None:
    for chat, title in enumerate(["Tea, and cake", "tea *", ""]):
        session = await begin(store, host, "what is for tea?", "cake", chat=str(chat))
        if title:
            await store.set_title(session, title, host)
    await store.driver.write(letters.bury, "telegram/bot", "what came", "it was torn", 10.0)


def complete(tmp_path: Path, *words: str, shell: Sequence[str] = ("bash", "-c", BASH, "bash")) -> list[str]:
    """The offers of a shell for a line of words, the last of which is being typed."""
    parts.program(parts.Part(shell[0]))
    program = tmp_path / "bin" / "segue"
    program.parent.mkdir(exist_ok=True)
    program.write_text(SEGUE)
    program.chmod(0o755)
    there = os.environ | {"HOME": str(tmp_path), "PATH": f"{program.parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    asked = [*shell, "segue", *words]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=tmp_path, env=there)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_bash_completes_titles_and_quotes_them(home: Home, tmp_path: Path) -> None:
    home.do(_talk)
    assert complete(tmp_path, "sessions", "show", "t") == [r"tea\ \*", r"Tea\,\ and\ cake"]
    assert complete(tmp_path, "sessions", "show", '"Tea,') == ["Tea, and cake"]


@pytest.mark.parametrize(
    ("shell", "sign"), [(("zsh", "-fc", ZSH, "zsh"), ":"), (("fish", "-c", FISH), "\t")], ids=["zsh", "fish"]
)
def test_other_shells_complete_titles_too(home: Home, tmp_path: Path, shell: Sequence[str], sign: str) -> None:
    home.do(_talk)
    offered = complete(tmp_path, "sessions", "show", "t", shell=shell)
    assert sorted(line.partition(sign)[0].replace("\\", "") for line in offered) == ["Tea, and cake", "tea *"]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("letters", "show", ""), ["in-1"]),
        (("handoff", "Trip", "te"), ["terminal", "telegram.bot"]),
        (("add", "t"), ["telegram"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
    ],
)
def test_places_ids_and_words_are_offered(home: Home, words: tuple[str, ...], offered: list[str]) -> None:
    home.do(_talk)
    (home.path / "segue.toml").write_text('[telegram.bot]\ntoken = "env:NOT_THERE"\npublic = true\n')
    assert sorted(_asked(home, *words)) == sorted(offered)


@pytest.mark.parametrize("words", [("sessions", "show", ""), ("people", "show", ""), ("schedules", "cancel", "")])
def test_where_nothing_is_nothing_is_offered_or_made(home: Home, words: tuple[str, ...]) -> None:
    assert _asked(home, *words) == []
    assert list(home.path.iterdir()) == []
    (home.path / "segue.toml").write_text("nonsense")
    assert _asked(home, *words) == []


def test_a_database_of_another_version_is_left_alone(home: Home) -> None:
    home.do(_talk)
    file = home.path / "segue.db"
    subprocess.run([sys.executable, "-c", _OLDER, str(file)], check=True)
    assert _asked(home, "sessions", "show", "") == []


_OLDER = "import apsw, sys; apsw.Connection(sys.argv[1]).execute('pragma user_version = 3')"


def _asked(home: Home, *words: str) -> list[str]:
    done = home.segue(
        env={"_SEGUE_COMPLETE": "fish_complete", "COMP_WORDS": " ".join(("segue", *words)), "COMP_CWORD": words[-1]}
    )
    assert done.exit_code == 0, done.output
    return [line.partition(",")[2].partition("\t")[0] for line in done.stdout.splitlines() if line]
