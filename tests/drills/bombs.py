"""Bracket bombs: texts that cost a renderer or a split of messages much more than their length, for every platform.

Work is counted, never timed: characters that are parsed, and lines of Python that run.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FrameType
from typing import Any

from markdown_it import MarkdownIt

from segue.adapters.discord import markup as discord
from segue.adapters.feishu import markup as feishu
from segue.adapters.matrix import content as matrix
from segue.adapters.signal import markup as signal
from segue.adapters.slack import markup as slack
from segue.adapters.telegram import markup as telegram
from segue.adapters.telegram.outgoing import fits as telegram_fits
from segue.adapters.whatsapp import markup as whatsapp
from segue.core.text.splitting import Fits, MessageRoom, split
from segue.core.values import Live
from tests.drills.planting import Bug, planted

_PARSED = 4
"""Times its length that a text may be parsed until it is sent."""
_GROWTH = 12
"""Times the work for a small text that a large one, of ten times its length, may cost."""
_LINES = 1_500
"""Lines that may run to render one character."""


class Renderer(Live, frozen=True):
    """A platform: its room, and how a message of it is rendered when it is sent."""

    fits: MessageRoom
    render: Callable[[str], object]


def _telegram(text: str) -> object:
    return telegram.rich(text) or telegram.render(text)


PLATFORMS = {
    "telegram": Renderer(telegram_fits, _telegram),
    "discord": Renderer(discord.fits, discord.render),
    "slack": Renderer(slack.fits, slack.render),
    "matrix": Renderer(matrix.fits, matrix.message),
    "signal": Renderer(signal.fits, signal.render),
    "whatsapp": Renderer(whatsapp.fits, whatsapp.render),
    "feishu": Renderer(feishu.fits, feishu.render),
}
PATTERNS = (
    *("[", "[]([", "![", "[a][", "[[a]", "[](", "![](", "](", "[a](<", '[a](b "', "[a]:\n", "[a]: b\n", "[x](y) "),
    *("*_~~a", "**", "***", "_a_ ", "a*b_", "*a **b ", "~~", "`", "``a`", "```", "```` ```\n ````", "~~~\n"),
    *("1) ", "1. ", "- ", "> ", "> - ", "# ", "a\n", "\n\n", "|a|\n|-|\n|", "|", "||a", "|a|b|\n|-|-|\n|c|d|\n\n"),
    *("<", "<a:", "<http://a", "http://a ", "&", "\\", "$$", "\\(", "a\u0301", "e" + "\u0301" * 50),
)


class Sizes(Live, frozen=True):
    """Characters of a small bomb and of a large one, ten times as long."""

    small: int = 2_000
    large: int = 20_000


def bomb(pattern: str, length: int) -> str:
    """A text of that length that repeats a pattern."""
    return (pattern * (length // len(pattern) + 1))[:length]


def parsed(do: Callable[[], object]) -> int:
    """Count the characters that are parsed as Markdown meanwhile."""
    count = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        if event == "call" and frame.f_code is MarkdownIt.parse.__code__:
            count += len(frame.f_locals["src"])

    sys.setprofile(note)
    try:
        do()
    finally:
        sys.setprofile(None)
    return count


def lines(do: Callable[[], object]) -> int:
    """Count the lines of Python that run meanwhile."""
    count = 0

    def note(_frame: FrameType, _event: str, _: object) -> Any:
        nonlocal count
        count += 1
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        do()
    finally:
        sys.settrace(before)
    return count


def sent(text: str, platform: Renderer) -> None:
    """Split a text and render its messages, as the gateway and the adapter do."""
    for piece in split(text, platform.fits):
        platform.render(piece)


def _pieces(text: str, fits: Fits) -> list[str]:
    return list(split(text, fits))


def overparsed(name: str, pattern: str, sizes: Sizes) -> Iterator[str]:
    """Say if a text of this pattern is parsed too often on its way to a platform."""
    text = bomb(pattern, sizes.large)
    times = parsed(lambda: sent(text, PLATFORMS[name])) / len(text)
    if times > _PARSED:
        yield f"{name}: {pattern[:20]!a} is parsed {times:.1f} times its length"


def overworked(name: str, pattern: str, sizes: Sizes) -> Iterator[str]:
    """Say if rendering a text of this pattern takes more than its length explains."""
    small, large = (
        lines(partial(PLATFORMS[name].fits.size, bomb(pattern, length))) for length in (sizes.small, sizes.large)
    )
    if large > _GROWTH * small:
        yield f"{name}: {pattern[:20]!a} costs {large / small:.1f} times as much for ten times the length"
    if large > _LINES * sizes.large:
        yield f"{name}: {pattern[:20]!a} costs {large / sizes.large:.0f} lines a character"


def oversplit(pattern: str, sizes: Sizes) -> Iterator[str]:
    """Say if splitting a text of this pattern takes more than its length explains."""

    def fits(text: str) -> bool:
        return len(text) <= sizes.small // 5

    small, large = (lines(partial(_pieces, bomb(pattern, length), fits)) for length in (sizes.small, sizes.large))
    if large > _GROWTH * small:
        yield f"split: {pattern[:20]!a} costs {large / small:.1f} times as much for ten times the length"


def run(patterns: Sequence[str] = PATTERNS, sizes: Sizes = Sizes(), bug: Bug = Bug.NONE) -> list[str]:  # noqa: B008 -- frozen
    """Let off each bomb on each platform; returns what is wrong."""
    with planted(*bug.patches):
        wrong = [line for pattern in patterns for line in oversplit(pattern, sizes)]
        for name in PLATFORMS:
            for pattern in patterns:
                wrong += [*overparsed(name, pattern, sizes), *overworked(name, pattern, sizes)]
    return wrong
