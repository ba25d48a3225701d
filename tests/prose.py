"""Checks the English of docs and docstrings: `python -m tests.prose`, a part of `make check`.

A smoke alarm, not the goal: a sentence is good when a stranger reads it once. It measures the length of sentences and
lines, and looks for a few habits that readers stumbled over. A passage that contains `prose: ok` is let through.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs"]
CODE = ["src/segue", "tests"]

NOT_YET = {
    # Rewritten one after the other; each is struck from this list by the commit that rewrites it.
    "SECURITY.md",
    *(f"docs/{name}.md" for name in ("adapters", "cli", "commands", "deploy")),
    *(f"docs/{name}.md" for name in ("settings",)),
    "tests",
    *(f"src/segue/{room}" for room in ("changes", "core", "database", "runtime")),
    "src/segue/agents/acp",
    *(f"src/segue/adapters/{name}" for name in ("discord", "feishu", "http", "matrix")),
    *(f"src/segue/adapters/{name}" for name in ("signal", "slack", "telegram", "whatsapp")),
}

MEAN_WORDS = 17
MOST_WORDS = 35
MOST_COLUMNS = 100

HABITS = re.compile(
    r"\b(?:whoever|whomever|that which|those of which|what goes|comes? to be|goes by|lets? go of|is told of"
    r"|stands? for what|what (?:was|is) (?:said|told|asked|kept|held) (?:of|to|by|on))\b",
    re.IGNORECASE,
)
ESCAPE = "prose: ok"
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
"""A block of code or of real output, which keeps its own lines."""


class Passage(NamedTuple):
    """A piece of running text and where it begins."""

    place: str
    text: str


def is_waiting(name: str) -> bool:
    """Return whether a page or file is on the list of those that aren't rewritten yet."""
    return any(name == entry or name.startswith(f"{entry}/") for entry in NOT_YET)


def list_files(roots: list[str], suffix: str) -> Iterator[tuple[str, Path]]:
    """The rewritten files below some roots, by their path in the repository."""
    for root in roots:
        path = ROOT / root
        for file in [path] if path.is_file() else sorted(path.rglob(f"*{suffix}")):
            name = file.relative_to(ROOT).as_posix()
            if not is_waiting(name):
                yield name, file


def blank_lines(block: re.Match[str]) -> str:
    """As many empty lines as a block has, so that the numbers of later lines stay true."""
    return "\n" * block[0].count("\n")


def read_page(name: str, text: str) -> Iterator[Passage]:
    """The paragraphs and list items of a Markdown page, without code, tables and headings."""
    start, lines, fenced = 1, list[str](), False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith("```"):
            fenced = not fenced
        breaks = fenced or line.startswith(("```", "    ", "|", "#", "!", "<!--")) or not line.strip()
        if breaks or re.match(r"\s*(?:[-*]|\d+\.) ", line):
            if lines:
                yield Passage(f"{name}:{start}", " ".join(lines))
            start, lines = number, []
        if not breaks:
            lines.append(re.sub(r"^\s*(?:[-*]|\d+\.) ", "", line).strip())


def read_docstrings(name: str, text: str) -> Iterator[Passage]:
    """The docstrings of a Python file, a paragraph each."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            line = getattr(node, "lineno", 1)
            for paragraph in (docstring or "").split("\n\n"):
                if paragraph.strip() and not paragraph.startswith(" "):
                    yield Passage(f"{name}:{line}", " ".join(paragraph.split()))


def split_sentences(text: str) -> list[str]:
    """The sentences of a passage; code and links count as one word each."""
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return [sentence for sentence in re.split(r"(?<=[.!?:;])\s+(?=[A-Z\"'(“*\d]|code)", text) if sentence.strip()]


def check_passages(passages: list[Passage]) -> Iterator[str]:
    """The findings in some passages that are measured together."""
    lengths = list[int]()
    for place, text in passages:
        for sentence in split_sentences(text):
            words = len(re.findall(r"\w[\w'.-]*", sentence))
            lengths.append(words)
            if words > MOST_WORDS and ESCAPE not in text:
                yield f"{place}: a sentence of {words} words, at most {MOST_WORDS}: {sentence[:80]}"
        if (habit := HABITS.search(text)) and ESCAPE not in text:
            yield f"{place}: “{habit[0]}” makes readers stumble; name the thing (writing rules in CONTRIBUTING.md)"
    if lengths and (mean := sum(lengths) / len(lengths)) > MEAN_WORDS:
        yield f"{passages[0].place}: sentences have {mean:.1f} words on average, at most {MEAN_WORDS}"


def check_all() -> Iterator[str]:
    """The findings in all rewritten pages and files; each file is measured by itself."""
    for name, file in list_files(PAGES, ".md"):
        text = file.read_text("utf-8")
        for number, line in enumerate(re.sub(FENCE, blank_lines, text).splitlines(), 1):
            if len(line) > MOST_COLUMNS and not line.startswith("|"):
                yield f"{name}:{number}: a line of {len(line)} characters, at most {MOST_COLUMNS}"
        yield from check_passages(list(read_page(name, text)))
    for name, file in list_files(CODE, ".py"):
        yield from check_passages(list(read_docstrings(name, file.read_text("utf-8"))))


def main() -> int:
    """Print what was found; the exit code says whether there was anything."""
    findings = list(check_all())
    sys.stdout.writelines(f"{finding}\n" for finding in findings)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
