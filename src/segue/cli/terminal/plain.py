"""Talks without a terminal: sends each input line and prints each answer."""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator

from segue.cli.terminal.client import Client, NoGateway
from segue.cli.terminal.handoff import Departure
from segue.cli.terminal.screen import QUIT, asked
from segue.runtime.windows.frames import (
    AnsweredFrame,
    HandoffFrame,
    InvitationFrame,
    QuestionsFrame,
    Shown,
    WaitingFrame,
)
from segue.runtime.windows.invitation import invitation

Frames = AsyncIterator[Shown]

_LONGEST_LINE = 4 * 1024 * 1024


def piped() -> asyncio.StreamReader:
    """Return standard input, read by a thread: the event loop can't wait for a file."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(_LONGEST_LINE)

    def read() -> None:
        while piece := os.read(sys.stdin.fileno(), 65536):
            loop.call_soon_threadsafe(reader.feed_data, piece)
        loop.call_soon_threadsafe(reader.feed_eof)

    threading.Thread(target=read, name="standard input", daemon=True).start()
    return reader


def given(text: str) -> asyncio.StreamReader:
    """Return a reader of known lines."""
    reader = asyncio.StreamReader()
    reader.feed_data(text.encode())
    reader.feed_eof()
    return reader


async def plain(client: Client, lines: asyncio.StreamReader) -> None:
    """Send each line and print each answer."""
    departure = Departure()
    frames = client.frames()
    await _open(frames)
    unanswered: set[str] = set()
    while line := (await lines.readline()).decode(errors="replace"):
        text = line.strip()
        if text in QUIT:
            return
        if text:
            before = departure.id
            unanswered.add(await client.say(text))
            async for answer in answers(client, frames, unanswered, departure):
                sys.stdout.write(answer + "\n")
            if departure.id != before:
                sys.stdout.write(await _ended(frames, departure) + "\n")
            sys.stdout.flush()
            if departure.done:
                return


async def _open(frames: Frames) -> None:
    async for frame in frames:
        if isinstance(frame, WaitingFrame):
            return
    raise _gone()


async def answers(client: Client, frames: Frames, unanswered: set[str], departure: Departure) -> AsyncIterator[str]:
    """Yield answers until every message has one, or until the agent asks a question for the next line.

    The progress of a handoff is processed meanwhile.
    """
    async for frame in frames:
        match frame:
            case HandoffFrame():
                departure.see(frame)
            case InvitationFrame():
                yield invitation(frame)
            case QuestionsFrame() if here := [question for question in frame.questions if question.here]:
                yield asked(here[-1])
                return
            case AnsweredFrame() if frame.id in unanswered:
                unanswered.remove(frame.id)
                for answer in frame.said:
                    yield client.lines(answer.text, answer.files)
                if not unanswered:
                    return
            case _:
                """Other frames print nothing."""
    raise _gone()


async def _ended(frames: Frames, departure: Departure) -> str:
    """Wait for the end of the handoff and describe it."""
    while departure.under_way:
        frame = await anext(frames, None)
        if frame is None:
            raise _gone()
        if isinstance(frame, HandoffFrame):
            departure.see(frame)
    return departure.farewell


def _gone() -> NoGateway:
    return NoGateway("The gateway has gone. Start it again with `segue serve`, and say it again.")
