"""Talking without a terminal: each line that comes in is said, and each answer is printed."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

from segue.cli.terminal.client import Client, NoGateway
from segue.cli.terminal.handoff import HANDING, Moved
from segue.cli.terminal.screen import QUIT
from segue.core.commands import Command, parse

Frames = AsyncIterator[dict[str, Any]]

_LONGEST_LINE = 4 * 1024 * 1024
_HAND_OFF = ("handoff", "yes")
"""The commands that a handoff may begin with: asked for, or allowed."""


def piped() -> asyncio.StreamReader:
    """What comes in on standard input, read beside the event loop: a file can't be waited for in it."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(_LONGEST_LINE)

    def read() -> None:
        while piece := os.read(sys.stdin.fileno(), 65536):
            loop.call_soon_threadsafe(reader.feed_data, piece)
        loop.call_soon_threadsafe(reader.feed_eof)

    threading.Thread(target=read, name="standard input", daemon=True).start()
    return reader


def given(text: str) -> asyncio.StreamReader:
    """Lines that are known already."""
    reader = asyncio.StreamReader()
    reader.feed_data(text.encode())
    reader.feed_eof()
    return reader


async def plain(client: Client, lines: asyncio.StreamReader) -> None:
    """Say each line, print each answer."""
    moved = Moved()
    frames = _watched(client.frames(), moved)
    await _open(frames)
    while line := (await lines.readline()).decode(errors="replace"):
        text = line.strip()
        if text in QUIT:
            return
        if text:
            answers = await _answers(client, frames, await client.say(text), text)
            for answer in answers:
                sys.stdout.write(answer + "\n")
            if _command(text) in _HAND_OFF and any(answer.startswith(HANDING) for answer in answers):
                sys.stdout.write(await _ended(frames, moved) + "\n")
            sys.stdout.flush()
            if moved.done:
                return


def _command(text: str) -> str:
    """The name of a command, whichever of its names was typed; empty if it is none."""
    found = parse(text)
    return found.name if isinstance(found, Command) else ""


async def _watched(frames: Frames, moved: Moved) -> Frames:
    """The frames, and what they tell of a handoff."""
    async for frame in frames:
        if "handoff" in frame:
            moved.see(frame["handoff"])
        yield frame


async def _ended(frames: Frames, moved: Moved) -> str:
    """What became of the handoff that was asked for."""
    while not moved.ended:
        if await anext(frames, None) is None:
            raise _gone()
    return moved.farewell


async def _open(frames: Frames) -> None:
    async for frame in frames:
        if "waiting" in frame:
            return
    raise _gone()


async def _answers(client: Client, frames: Frames, id: str, text: str) -> list[str]:
    """What is answered to a message: until it is accepted whatever comes is about something else."""
    accepted, answered = False, False
    async for frame in frames:
        accepted = accepted or frame.get("accepted") == id
        if not accepted:
            continue
        if "notice" in frame:
            return [frame["notice"]]
        entries: list[dict[str, Any]] = frame.get("entries") or frame.get("transcript") or []
        # What follows a command, as in `/new TEXT`, is what was said; a retry says what was said last once more.
        again = _command(text) == "retry"
        said = [n for n, e in enumerate(entries) if e["role"] == "person" and e["text"]]
        mine = [n for n in said if again or text.endswith(entries[n]["text"])]
        answered = answered or bool(mine)
        since = mine[-1] if mine else len(entries)
        if answers := [entry for entry in entries[since:] if entry["role"] != "person"]:
            return ["\n".join(filter(None, [answer["text"], *client.kept(answer["files"])])) for answer in answers]
        # A turn that was stopped before it said anything.
        if answered and frame.get("waiting") == []:
            return []
    raise _gone()


def _gone() -> NoGateway:
    return NoGateway("The gateway has gone. Start it again with `segue serve`, and say it again.")
