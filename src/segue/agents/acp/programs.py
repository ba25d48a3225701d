"""Programs that speak ACP and may be on a machine already."""

import shutil
from collections.abc import Iterator

from segue.core.values import Value


class KnownProgram(Value, frozen=True):
    """A program, and how it is asked to speak ACP."""

    name: str
    """Its name in segue.toml: [agents.NAME]."""
    title: str
    command: tuple[str, ...]


KNOWN = (
    KnownProgram("claude", "Claude Code", ("claude-agent-acp",)),
    KnownProgram("claude", "Claude Code", ("claude-code-acp",)),
    KnownProgram("codex", "Codex", ("codex-acp",)),
    KnownProgram("gemini", "Gemini CLI", ("gemini", "--experimental-acp")),
    KnownProgram("opencode", "OpenCode", ("opencode", "acp")),
    KnownProgram("goose", "Goose", ("goose", "acp")),
    KnownProgram("qwen", "Qwen Code", ("qwen", "--experimental-acp")),
)


def installed(path: str) -> Iterator[tuple[KnownProgram, str]]:
    """The programs that are on a search path, each name once, with the file of each."""
    names = set[str]()
    for program in KNOWN:
        file = shutil.which(program.command[0], path=path)
        if file is not None and program.name not in names:
            names.add(program.name)
            yield program, file
