"""Processes forked from a server that has imported everything: they start in the time that they need for themselves.

`start` runs any function so, `segue` the command line. Where it matters what a program imports, it is run by Python.
"""

import asyncio
import contextlib
import fcntl
import io
import multiprocessing
import os
import signal
import sys
import termios
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

_server = multiprocessing.get_context("forkserver")
# One server forks for everybody in this process, so that it is told of all of them.
_server.set_forkserver_preload(["tests.imported"])


def start(target: Callable[..., None], *arguments: object) -> BaseProcess:
    """Run a function in a process of its own."""
    process = _server.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


def kill(process: BaseProcess) -> None:
    """End a process as a power cut would end its program."""
    assert process.pid is not None
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
    process.join()


def segue(arguments: tuple[str, ...], home: Path, folder: Path, *streams: int, **environ: str) -> BaseProcess:
    """Run a `segue` of a home in a folder, with these for input, output and errors; they are closed here.

    The only stream is a terminal.
    """
    given = [Connection(stream) for stream in streams]
    try:
        return start(_segue, arguments, os.environ | {"SEGUE_HOME": str(home)} | environ, str(folder), given)
    finally:
        for stream in given:
            stream.close()


def _segue(arguments: tuple[str, ...], environ: Mapping[str, str], folder: str, given: list[Connection]) -> None:
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    os.chdir(folder)
    sys.path.insert(0, folder)
    os.setsid()
    if len(given) == 1:
        fcntl.ioctl(given[0].fileno(), termios.TIOCSCTTY, 0)
        given *= 3
    for number, stream in enumerate(given):
        os.dup2(stream.fileno(), number)
    for stream in given:
        stream.close()
    sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False), encoding="utf-8")  # noqa: SIM115 -- as long as the process
    sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), encoding="utf-8", line_buffering=os.isatty(1))  # noqa: SIM115
    sys.stderr = io.TextIOWrapper(open(2, "wb", closefd=False), encoding="utf-8", line_buffering=True)  # noqa: SIM115
    # As a shell does, though whoever started the tests ignores it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["segue", *arguments]
    from segue.cli.main import main  # noqa: PLC0415 -- only where it runs

    main(prog_name="segue")


@asynccontextmanager
async def reading(pipe: int) -> AsyncIterator[asyncio.StreamReader]:
    """What comes out of a pipe, which is closed at the end of the block."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    file = open(pipe, "rb", buffering=0)  # noqa: ASYNC230, SIM115 -- nothing is read from it here; the transport closes it
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    try:
        yield reader
    finally:
        transport.close()


class Piped:
    """A `segue` whose input, output and errors are pipes."""

    def __init__(self, process: BaseProcess, stdout: asyncio.StreamReader, stderr: asyncio.StreamReader) -> None:
        self.process = process
        self.stdout = stdout
        self.stderr = stderr

    @property
    def returncode(self) -> int | None:
        """How it ended; nothing while it runs."""
        return self.process.exitcode

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    async def end(self) -> tuple[int, str, str]:
        """Wait until it ends; returns its exit code, and what it wrote that nobody has read."""
        out, err = await asyncio.gather(self.stdout.read(), self.stderr.read())
        await asyncio.to_thread(self.process.join)
        assert self.process.exitcode is not None
        return self.process.exitcode, out.decode(), err.decode()


@asynccontextmanager
async def piped(
    *arguments: str, home: Path, folder: Path | None = None, typed: str = "", **environ: str
) -> AsyncIterator[Piped]:
    """A `segue` that runs, and is killed at the end of the block if it hasn't ended."""
    (read_in, write_in), (read_out, write_out), (read_err, write_err) = os.pipe(), os.pipe(), os.pipe()
    os.write(write_in, typed.encode())
    os.close(write_in)
    streams = read_in, write_out, write_err
    process = await asyncio.to_thread(lambda: segue(arguments, home, folder or home, *streams, **environ))
    try:
        async with reading(read_out) as stdout, reading(read_err) as stderr:
            yield Piped(process, stdout, stderr)
    finally:
        await asyncio.to_thread(kill, process)


async def done(
    *arguments: str, home: Path, folder: Path | None = None, typed: str = "", **environ: str
) -> tuple[int, str, str]:
    """Run a `segue` to its end: its exit code, its output and its errors."""
    async with piped(*arguments, home=home, folder=folder, typed=typed, **environ) as running:
        return await running.end()
