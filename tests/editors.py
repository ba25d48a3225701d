"""Editors, as the protocol's own library makes them: one in this process, or in front of a `segue acp`."""

import asyncio
import json
import os
import socket
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, cast

import acp
from acp import PROTOCOL_VERSION, connect_to_agent, text_block
from acp.client import ClientSideConnection
from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    InitializeResponse,
    PermissionOption,
    RequestPermissionResponse,
    SessionInfoUpdate,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UserMessageChunk,
)
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from segue.cli.terminal.client import Client, open_client
from segue.core.windows import EDITOR
from segue.runtime.editors.agent import serve
from segue.runtime.editors.wire import LONGEST, StdioLines
from segue.runtime.windows.frames import OpenRequest
from segue.testing.waits import PATIENCE, Changes
from tests import forge

_MOST = 64 * 1024 * 1024


class Asked:
    """A permission that an editor is asked for."""

    def __init__(self, call: ToolCallUpdate, options: list[PermissionOption]) -> None:
        self.call = call
        self.options = options
        self.chosen: asyncio.Future[str] = asyncio.get_running_loop().create_future()


class Editor:
    """Somebody at an editor: what each conversation shows, and what is asked."""

    def __init__(self) -> None:
        self.agent: ClientSideConnection
        self.offers: InitializeResponse
        self.updates: dict[str, list[Any]] = defaultdict(list)
        self.asked: list[Asked] = []
        self.changes = Changes()

    def on_connect(self, conn: Any) -> None:
        self.agent = conn

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates[session_id].append(update)
        self.changes.tell()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        one = Asked(tool_call, options)
        self.asked.append(one)
        self.changes.tell()
        choice = await one.chosen
        if not choice:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=choice))

    async def begin(self) -> "Editor":
        """Say hello."""
        async with asyncio.timeout(PATIENCE):
            self.offers = await self.agent.initialize(PROTOCOL_VERSION, ClientCapabilities())
        return self

    async def new(self) -> str:
        """Begin a conversation."""
        async with asyncio.timeout(PATIENCE):
            return (await self.agent.new_session(cwd="/tmp")).session_id

    async def load(self, session: str) -> None:
        """Open a conversation."""
        async with asyncio.timeout(PATIENCE):
            await self.agent.load_session(cwd="/tmp", session_id=session)

    async def says(self, session: str, *blocks: Any, **meta: Any) -> str:
        """Prompt; returns why it stopped."""
        prompt = [text_block(block) if isinstance(block, str) else block for block in blocks]
        async with asyncio.timeout(PATIENCE):
            return (await self.agent.prompt(session_id=session, prompt=prompt, **meta)).stop_reason

    def shows(self, session: str) -> list[tuple[str, str]]:
        """The conversation as the editor shows it: who said what, chunks of one speaker together."""
        said = [(kind, text) for update in self.updates[session] for kind, text in _shown(update)]
        return [
            (kind, "".join(text for _, text in group).strip()) for kind, group in groupby(said, key=lambda one: one[0])
        ]

    async def until(self, so: Callable[[], Any]) -> Any:
        """Wait until something is so."""
        return await self.changes.until(lambda: so() or None, lambda: f"never; {dict(self.updates)}")


_SPEAKERS = {UserMessageChunk: "person", AgentMessageChunk: "agent", AgentThoughtChunk: "thought"}


def _shown(update: Any) -> list[tuple[str, str]]:
    match update:
        case UserMessageChunk() | AgentMessageChunk() | AgentThoughtChunk():
            said = update.content
            text = said.text if isinstance(said, TextContentBlock) else f"<{getattr(said, 'name', said.type)}>"
            return [(_SPEAKERS[type(update)], text)]
        case ToolCallStart():
            return [("tool", f"{update.title}: {update.status}")]
        case ToolCallProgress():
            return [("tool", f" {update.status}")]
        case SessionInfoUpdate():
            return [("title", str(update.title))]
        case _:
            return []


@asynccontextmanager
async def editor_in(folder: Path) -> AsyncIterator[Editor]:
    """An editor, and its agent in this process, which is a client of the gateway of a data folder."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours, limit=LONGEST)
    from_agent, to_agent = await asyncio.open_connection(sock=theirs, limit=_MOST)

    async def open_window(request: OpenRequest) -> Client:
        return await open_client(folder, request, EDITOR)

    editor = Editor()
    serving = asyncio.create_task(serve(open_window, StdioLines(reader, writer).pipe))
    connection = connect_to_agent(cast("acp.Client", editor), to_agent, from_agent, use_unstable_protocol=True)
    try:
        yield await editor.begin()
    finally:
        await connection.close()
        to_agent.close()
        await serving
        writer.close()


class Process:
    """A `segue acp` that runs, and its pipes."""

    def __init__(self, home: Path) -> None:
        self.home = home

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """What it writes, and where it reads."""
        (read_in, write_in), (read_out, write_out) = os.pipe(), os.pipe()
        errors = os.open(self.home / "acp.err", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.process = await asyncio.to_thread(
            lambda: forge.segue(("acp",), self.home, self.home, read_in, write_out, errors)
        )
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_MOST)
        out = open(read_out, "rb", buffering=0)  # noqa: ASYNC230, PTH123, SIM115 -- the transport closes it
        reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), out)
        into = open(write_in, "wb", buffering=0)  # noqa: ASYNC230, PTH123, SIM115 -- the transport closes it
        writing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, into)
        try:
            yield reader, asyncio.StreamWriter(writing, protocol, None, loop)
        finally:
            writing.close()
            reading.close()
            await asyncio.to_thread(forge.kill, self.process)


@asynccontextmanager
async def editor_of(home: Path) -> AsyncIterator[tuple[Editor, Process]]:
    """An editor in front of a `segue acp` of a home."""
    process = Process(home)
    async with process.streams() as (reader, writer):
        editor = Editor()
        connection = connect_to_agent(cast("acp.Client", editor), writer, reader, use_unstable_protocol=True)
        try:
            yield await editor.begin(), process
        finally:
            await connection.close()


class Frames:
    """Messages in frames of a WebSocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send(self, message: dict[str, Any]) -> None:
        await self._socket.send(json.dumps(message))

    async def receive(self) -> dict[str, Any] | None:
        try:
            message: dict[str, Any] = json.loads(await self._socket.recv())
        except ConnectionClosed:
            return None
        return message

    async def close(self) -> None:
        await self._socket.close()


@asynccontextmanager
async def editor_at(url: str, token: str) -> AsyncIterator[tuple[Editor, ClientConnection]]:
    """An editor elsewhere, with a token."""
    headers = {"Authorization": f"Bearer {token}"}
    async with connect(f"{url.replace('http', 'ws')}/acp", additional_headers=headers, proxy=None) as socket:
        editor = Editor()
        connection = connect_to_agent(cast("acp.Client", editor), Frames(socket), use_unstable_protocol=True)
        try:
            yield editor, socket
        finally:
            await connection.close()
