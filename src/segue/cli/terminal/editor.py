"""Serves an editor on standard input and output, as a client of the gateway."""

import asyncio
import os
import sys
from contextlib import AsyncExitStack

from segue.cli.gateway import RunningGateway
from segue.cli.terminal.client import Client, NoGateway, open_client, running
from segue.config import Config
from segue.core.windows import EDITOR
from segue.runtime.editors.agent import serve as serve_editor
from segue.runtime.editors.wire import LONGEST, StdioLines
from segue.runtime.windows.frames import OpenRequest


async def serve(config: Config) -> None:
    """Serve the editor that started this process.

    Afterwards, wait for the other windows if the gateway runs in this process.
    """
    async with AsyncExitStack() as stack:
        lines = await _streams()
        own = await _running(stack, config)

        async def open_window(request: OpenRequest) -> Client:
            return await open_client(config.data, request, EDITOR)

        await serve_editor(open_window, lines.pipe)
        if own is not None:
            await own.outlast()


async def _running(stack: AsyncExitStack, config: Config) -> RunningGateway | None:
    """Use the running gateway, or run one in this process."""
    while True:
        try:
            return await stack.enter_async_context(running(config))
        except NoGateway:
            continue  # another editor started one first


async def _streams() -> StdioLines:
    """Return standard input and output. Other prints of this process go to standard error."""
    loop = asyncio.get_running_loop()
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    reader = asyncio.StreamReader(limit=LONGEST)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, out)
    return StdioLines(reader, asyncio.StreamWriter(transport, protocol, None, loop))
