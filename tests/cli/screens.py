"""A `segue` in a real pseudo-terminal, and what is on its screen."""

import asyncio
import fcntl
import os
import pty
import struct
import termios
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pyte

from tests.forge import kill, segue
from tests.served import PATIENCE


class Terminal:
    """Somebody's terminal."""

    def __init__(self, home: Path, *arguments: str, **environ: str) -> None:
        self._screen = pyte.HistoryScreen(80, 24, history=1000)
        # The program asks where the cursor is, as of any terminal.
        self._screen.write_process_input = self.types  # type: ignore[assignment,method-assign]  # pyte's way to be answered
        self._stream = pyte.ByteStream(self._screen)
        self._changed = asyncio.Event()
        self.ended = False
        self._file, inside = pty.openpty()
        self._process = segue(arguments, home, home, inside, TERM="xterm-256color", **environ)
        self.resize(24, 80)
        asyncio.get_running_loop().add_reader(self._file, self._read)

    def resize(self, lines: int, columns: int) -> None:
        """Somebody pulls at the window; the program hears SIGWINCH."""
        self._screen.resize(lines, columns)
        fcntl.ioctl(self._file, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def types(self, keys: str) -> None:
        """Press keys."""
        os.write(self._file, keys.encode())

    @property
    def text(self) -> str:
        """What is on the screen, and what has scrolled by."""
        above = ["".join(line[x].data for x in sorted(line)) for line in self._screen.history.top]
        return "\n".join([*(line.rstrip() for line in above), *(line.rstrip() for line in self._screen.display)])

    async def until(self, so: Callable[[str], object]) -> None:
        """Wait until the screen is so."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not so(self.text):
                    assert not self.ended, f"it ended:\n{self.text}"
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"it never came:\n{self.text}") from None

    async def shows(self, text: str) -> None:
        """Wait until this is on the screen."""
        await self.until(lambda screen: text in screen)

    async def leaves(self) -> int:
        """Wait until the program ends; returns its exit code."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not self.ended:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"it never ended:\n{self.text}") from None
        await asyncio.to_thread(self._process.join)
        assert self._process.exitcode is not None
        return self._process.exitcode

    def close(self) -> None:
        """Somebody closes the window: the program hears SIGHUP."""
        if self._file >= 0:
            asyncio.get_running_loop().remove_reader(self._file)
            os.close(self._file)
            self._file = -1

    async def end(self) -> None:
        """Nobody is there any more."""
        self.close()
        await asyncio.to_thread(kill, self._process)

    def _read(self) -> None:
        try:
            piece = os.read(self._file, 65536)
        except OSError:
            # What Linux says when the other side is closed.
            piece = b""
        if piece:
            self._stream.feed(piece)
        else:
            self.ended = True
            asyncio.get_running_loop().remove_reader(self._file)
        self._changed.set()


@asynccontextmanager
async def terminal(home: Path, *arguments: str) -> AsyncIterator[Terminal]:
    """A `segue` in a terminal, ready to be typed to."""
    made = Terminal(home, *arguments)
    try:
        await made.shows("/help, /quit")
        yield made
    finally:
        await made.end()
