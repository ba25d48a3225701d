"""Calls to a callback, 64 at once: what each costs the process that makes them, beside other clients."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import httpx2
import msgspec

from bench.databases import Databases
from bench.table import Line, Target, milliseconds
from segue.adapters.http.callback import Call, Callback
from segue.core.lanes import Address
from segue.core.values import Secret

_AT_ONCE = 64
_EACH = 60
_LAPS = 4
_CALL = Call("key", "message", Address("http", "bench", "", "there"), text="An answer of ordinary length. " * 10)
_PLATFORM = """
import asyncio, re
made = 0
async def serve(reader, writer):
    global made
    made += 1
    try:
        while head := await reader.readuntil(b"\\r\\n\\r\\n"):
            await reader.readexactly(int(re.search(rb"(?i)content-length: *(\\d+)", head)[1]))
            body = b'{"id": "%d"}' % made
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
    except asyncio.IncompleteReadError:
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
"""A platform that takes everything; the id that it answers is the number of connections that were made to it."""

Makes = Callable[[], Awaitable[bytes]]
"""Makes one call and returns the body of its answer."""


async def callback(databases: Databases) -> AsyncIterator[Line]:
    """Segue's own client, httpx2 and aiohttp, each with as many connections as there are calls at once."""
    del databases
    body = msgspec.json.encode(_CALL)
    headers = {"Content-Type": "application/json"}
    clients: dict[str, Callable[[str, AsyncExitStack], Awaitable[Makes]]] = {
        "Segue": _ours,
        "httpx2": lambda url, open_: _httpx2(url, open_, body, headers),
        "aiohttp": lambda url, open_: _aiohttp(url, open_, body, headers),
    }
    costs: dict[str, list[float]] = {name: [] for name in clients}
    connections = 0
    for _ in range(_LAPS):
        for name, make in clients.items():
            async with _platform() as url, AsyncExitStack() as open_:
                cost, made = await _cost(await make(url, open_))
            costs[name].append(cost)
            connections = max(connections, made if name == "Segue" else 0)
    ours = min(costs.pop("Segue"))
    for name, theirs in costs.items():
        beside = f"{milliseconds(min(theirs))} by {name}"
        what = f"CPU of a call to a callback, {_AT_ONCE} at once"
        yield Line("callback", what, milliseconds(ours), beside, ours / min(theirs), Target("<", 1, "ms"), ours * 1000)
    what = f"connections for {_AT_ONCE} calls at once"
    yield Line("callback", what, str(connections), "", None, Target("<=", _AT_ONCE), connections)


async def _cost(make: Makes) -> tuple[float, int]:
    """The CPU time of a call, and how many connections were made."""

    async def sender() -> bytes:
        for _ in range(_EACH - 1):
            await make()
        return await make()

    began = time.process_time()
    answers = await asyncio.gather(*(sender() for _ in range(_AT_ONCE)))
    cost = (time.process_time() - began) / (_AT_ONCE * _EACH)
    return cost, max(int(msgspec.json.decode(answer)["id"]) for answer in answers)


@asynccontextmanager
async def _platform() -> AsyncIterator[str]:
    command = (sys.executable, "-c", _PLATFORM)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}/"
    finally:
        process.kill()
        await process.wait()


async def _ours(url: str, open_: AsyncExitStack) -> Makes:
    client = Callback(url, Secret("a secret of the bench"), time.time)
    open_.push_async_callback(client.close)
    return lambda: client.call(_CALL)


async def _httpx2(url: str, open_: AsyncExitStack, body: bytes, headers: Mapping[str, str]) -> Makes:
    limits = httpx2.Limits(max_connections=_AT_ONCE, max_keepalive_connections=_AT_ONCE)
    client = await open_.enter_async_context(httpx2.AsyncClient(limits=limits, trust_env=False))

    async def call() -> bytes:
        return (await client.post(url, content=body, headers=headers)).content

    return call


async def _aiohttp(url: str, open_: AsyncExitStack, body: bytes, headers: Mapping[str, str]) -> Makes:
    connector = aiohttp.TCPConnector(limit=_AT_ONCE)
    client = await open_.enter_async_context(aiohttp.ClientSession(connector=connector))

    async def call() -> bytes:
        async with client.post(url, data=body, headers=headers) as answer:
            return await answer.read()

    return call
