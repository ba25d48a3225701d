"""Markdown: as a tree that each platform's renderer walks, and what of it a cut would spoil.

Blocks and spans take one pass, so that no text, however it is made, takes long.
"""

import re
from collections import defaultdict

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from segue.core.values import Value

_DEEPEST = 50
READABLE = 20_000
"""Characters that are read as Markdown; a longer text is paragraphs."""
_DEEP = 8
"""Brackets around each character, on average, that are looked into: the parser goes through each for itself."""
_SHALLOW = 4_000
"""Characters within brackets that are looked into in any case."""
_MOST_CELLS = 10_000
_TABLELESS = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST}).enable("strikethrough")
_MARKDOWN = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST}).enable(["strikethrough", "table"])

_OPENS = re.compile(r"^[ \t]*(?:>[ \t]?)*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n(?:[ \t]*+\n)++")
_BRACKET = re.compile(r"[\[\]]|\n[ \t]*\n")
_CLOSES = re.compile(r"^[ \t>]*(?P<fence>`{3,}|~{3,})[ \t\r]*$", re.MULTILINE)
_TOKEN = re.compile(
    r"\\."
    r"|(?P<code>`+)"
    r"|(?P<link>!?\[[^\[\]\n]*\]\([^()\s]*+(?:\([^()\s]*+\)[^()\s]*+)*+(?:[ \t]+\"[^\"\n]*\")?\))"
    r"|(?P<mark>\*{1,3}|_{1,3}|~~|\|\|)"
)


def parse(text: str) -> SyntaxTreeNode:
    """A text as a tree of CommonMark with strikethrough and tables.

    What looks like HTML is text, so whoever renders it escapes it; a link whose scheme could run something is text too.
    """
    if len(text) > READABLE or _enclosed(text) > max(_DEEP * len(text), _SHALLOW):
        return _paragraphs(text)
    lines = text.split("\n")
    # A row gets all the cells of its heading, however few it has itself.
    cells = len(lines) * max(line.count("|") for line in lines)
    tokens = (_MARKDOWN if cells <= _MOST_CELLS else _TABLELESS).parse(text)
    # Blocks that lie deeper are left out, and emphasis may lie too deep to be walked: such a text is only paragraphs.
    deep = any(inside.level >= _DEEPEST - 1 for token in tokens for inside in (token, *(token.children or ())))
    return _paragraphs(text) if deep else SyntaxTreeNode(tokens)


def _paragraphs(text: str) -> SyntaxTreeNode:
    """A text as paragraphs without any marks, for which nothing has to be parsed."""
    tokens: list[Token] = []
    for paragraph in _BLANK_LINES.split(text.replace("\r\n", "\n").replace("\0", "\ufffd")):
        if content := paragraph.strip():
            inside = [Token("text", "", 0, content=content)]
            tokens += (
                Token("paragraph_open", "p", 1),
                Token("inline", "", 0, content=content, children=inside),
                Token("paragraph_close", "p", -1),
            )
    return SyntaxTreeNode(tokens)


def _enclosed(text: str) -> int:
    """Count the characters within brackets, once for each bracket; one that isn't closed ends with its paragraph.

    Blocks of code don't count.
    """
    enclosed, opened, code = 0, list[int](), iter(blocks(text))
    block = next(code, None)
    for found in _BRACKET.finditer(text):
        at = found.start()
        while block and block.end <= at:
            block = next(code, None)
        if block and block.start <= at:
            continue
        if found[0] == "[":
            opened.append(at)
        elif found[0] != "]":
            enclosed += sum(at - start for start in opened)
            opened.clear()
        elif opened:
            enclosed += at - opened.pop()
    return enclosed + sum(len(text) - start for start in opened)


def words(node: SyntaxTreeNode) -> str:
    """The text of a node, without its markup."""
    if node.type in {"softbreak", "hardbreak"}:
        return "\n"
    return node.content if not node.children else "".join(map(words, node.children))


class Block(Value, frozen=True):
    """A fenced block of code: where it stands, and the lines that open and close it, each with its line break."""

    start: int
    body: int
    """The beginning of the line after the opening one."""
    tail: int
    """The end of the last line of code."""
    end: int
    opening: str
    closing: str


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a text, in order; one that is never closed goes on to the end."""
    found: list[Block] = []
    at, last = 0, len(text.rstrip())
    while opens := _OPENS.search(text, at, last):
        opening, fence = opens[0].rstrip() + "\n", opens["fence"]
        body = min(opens.end() + 1, last)
        closes = next((c for c in _CLOSES.finditer(text, body, last) if c["fence"].startswith(fence)), None)
        if closes is None:
            closing = "\n" + opens[0][: opens.end("fence") - opens.start()]
            found.append(Block(opens.start(), body, last, last, opening, closing))
            break
        closing = "\n" + closes[0].rstrip()
        tail, end = max(closes.start() - 1, body), closes.start() - 1 + len(closing)
        found.append(Block(opens.start(), body, tail, end, opening, closing))
        at = closes.end()
    return found


def spans(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The links, inline code and emphasis of a stretch, the outermost ones, in order."""
    found: list[tuple[int, int]] = []
    ticks: dict[int, list[int]] = defaultdict(list)
    tokens = list(_TOKEN.finditer(text, start, end))
    for token in reversed(tokens):
        if token["code"]:
            ticks[len(token[0])].append(token.end())
    opened: dict[str, int] = {}
    inside = start
    for token in tokens:
        if token["code"]:
            ends = ticks[len(token[0])]
            ends.pop()
            if token.start() >= inside and ends:
                found.append((token.start(), ends[-1]))
                inside = ends[-1]
        elif token.start() < inside:
            continue
        elif token["link"]:
            found.append(token.span())
        elif mark := token["mark"]:
            _emphasise(text, mark, token.start(), opened, found)
    return _outermost(found)


def _emphasise(text: str, mark: str, at: int, opened: dict[str, int], found: list[tuple[int, int]]) -> None:
    """Open or close emphasis; what was opened inside and never closed is only text."""
    after = at + len(mark)
    left, right = text[at - 1 : at], text[after : after + 1]
    # An underscore inside a word is part of a name.
    opens = bool(right.strip()) and not (mark[0] == "_" and left.isalnum())
    closes = bool(left.strip()) and not (mark[0] == "_" and right.isalnum())
    if closes and mark in opened:
        began = opened[mark]
        found.append((began, after))
        for other in [other for other, position in opened.items() if position >= began]:
            del opened[other]
    elif opens:
        opened.setdefault(mark, at)


def _outermost(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if kept and start < kept[-1][1]:
            kept[-1] = (kept[-1][0], max(end, kept[-1][1]))
        else:
            kept.append((start, end))
    return kept
