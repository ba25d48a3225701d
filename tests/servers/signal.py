"""crabline's Signal on loopback, and what it can't do put in on the way.

`Between` stands between crabline and an adapter: it keeps what the account sent, with the times that it got, makes a
reply, a mention, an edit, a deletion or a file of a plain message, tells events again, cuts its listeners off, and
does what crabline's daemon can't (getAttachment, remoteDelete, listAccounts, startLink, finishLink), in the form that
signal-cli's own source and manual give these.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from segue.core.lanes import Address
from segue.runtime.server.app import Mounted
from segue.runtime.server.listeners import Listener, serving
from segue.testing.harness import Seen
from segue.testing.waits import Changes
from tests.clients import http_client
from tests.servers.providers import Crabline

NUMBER = "+15550000000"
OWN = "00000000-0000-4000-8000-000000000000"
"""The account's own UUID."""
ADMIN = "admin-of-the-test"
LINK = "sgnl://linkdevice?uuid=8d2f&pub_key=BQ"
Json = dict[str, Any]
Doctor = Callable[[Json], Any]


class Someone(NamedTuple):
    """Somebody on Signal."""

    uuid: str
    number: str


PEOPLE = {
    "Ann": Someone("9f1c0ab2-6b1d-4a0e-8d3a-000000000501", "+4915100000501"),
    "Ben": Someone("9f1c0ab2-6b1d-4a0e-8d3a-000000000502", "+4915100000502"),
}


class Between:
    """Passes calls on to crabline, and people's messages to the adapter."""

    def __init__(self, signal: Crabline) -> None:
        self.signal = signal
        self.calls: list[tuple[str, Json]] = []
        """What the adapter called, in order."""
        self.refuse: Callable[[str, Json], Json | Response | None] = lambda _method, _params: None
        """Answers a call instead of crabline: an error of the daemon's, or another answer."""
        self.taken: Callable[[str, Json], Awaitable[None]] | None = None
        """Is told of a call that crabline took, before the adapter hears that it did."""
        self.accounts = [NUMBER]
        self.scanned = asyncio.Event()
        """Somebody has scanned the code."""
        self.files: dict[str, bytes] = {}
        self.sent_files: list[str] = []
        self.down = False
        """Nobody gets through."""
        self.told: list[Any] = []
        """The events that were told."""
        self.changes = Changes()
        self._sent: dict[str, dict[str, str]] = {}
        self._doctored: dict[str, list[Doctor]] = {}
        self._listeners: set[asyncio.Queue[Any]] = set()
        self._waiting: list[Any] = []
        """What crabline has never heard of, and nobody was there to be told."""
        self._groups = itertools.count(1)
        self._client = http_client(timeout=60)

    @property
    def listeners(self) -> int:
        """Streams that are open."""
        return len(self._listeners)

    async def listened(self) -> None:
        """Wait until somebody listens."""
        await self.changes.until(lambda: self._listeners or None, lambda: "nobody ever listened")

    async def left(self) -> None:
        """Wait until nobody listens: what is said from now on waits for whoever comes next."""
        await self.changes.until(lambda: None if self._listeners else True, lambda: "somebody listens for ever")

    async def cut(self) -> None:
        """End every stream, and let nobody through."""
        self.down = True
        for queue in list(self._listeners):
            queue.put_nowait(None)
        await self.left()

    def end(self) -> None:
        """Let go of whoever listens."""
        for queue in list(self._listeners):
            queue.put_nowait(None)

    async def close(self) -> None:
        await self._client.aclose()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        if self.down:
            await Response("down", 503)(scope, receive, send)
        elif request.url.path == "/api/v1/events":
            await self._stream(request, receive, send)
        else:
            with contextlib.suppress(ClientDisconnect):  # killed while it was calling
                await (await self._answer(request))(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        raw = await request.body()
        asked = json.loads(raw)
        method, params = asked["method"], asked.get("params", {})
        self.calls.append((method, params))
        self.changes.tell()
        instead = self.refuse(method, params)
        if isinstance(instead, Response):
            return instead
        error, result = instead, None if instead else await self._itself(method, params)
        if error is not None or result is not None:
            told = {"error": error} if error is not None else {"result": result}
            return Response(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **told}), media_type="application/json")
        try:
            passed = await self._client.post(
                f"{self.signal.url}/api/v1/rpc", content=raw, headers={"Content-Type": "application/json"}
            )
        except httpx2.TransportError:
            return Response("down", 502)
        if "result" in passed.json() and method == "send":
            self._keep(params, str(passed.json()["result"]["timestamp"]))
        if self.taken is not None:
            await self.taken(method, params)
        return Response(passed.content, passed.status_code, media_type="application/json")

    async def _itself(self, method: str, params: Json) -> Any:
        """Do what crabline can't; None if it can."""
        match method:
            case "getAttachment" if params["id"] in self.files:
                return {"data": base64.b64encode(self.files[params["id"]]).decode()}
            case "remoteDelete":
                self._sent.get(_whom(params), {}).pop(str(params["targetTimestamp"]), None)
                self.changes.tell()
                return {"timestamp": params["targetTimestamp"] + 1, "results": []}
            case "listAccounts":
                return [{"number": number} for number in self.accounts]
            case "startLink":
                return {"deviceLinkUri": LINK}
            case "finishLink" if params["deviceLinkUri"] == LINK:
                await self.scanned.wait()
                self.accounts.append(NUMBER)
                return {"number": NUMBER}
            case _:
                return None

    def _keep(self, params: Json, id: str) -> None:
        self._sent.setdefault(_whom(params), {})[id] = params.get("message", "")
        self.sent_files += params.get("attachments", ())
        self.changes.tell()

    async def _stream(self, request: Request, receive: Any, send: Any) -> None:
        """A stream of events: while it is open, and no longer, crabline tells what happens."""
        if request.query_params.get("account") not in self.accounts:
            await Response("", 400)(request.scope, receive, send)
            return
        queue: asyncio.Queue[Any] = asyncio.Queue()
        try:
            url = f"{self.signal.url}/api/v1/events"
            async with self._client.stream("GET", url, timeout=None) as there:
                headers = [(b"content-type", b"text/event-stream")]
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                await send({"type": "http.response.body", "body": b"", "more_body": True})
                self._listeners.add(queue)
                for event in self._waiting:
                    queue.put_nowait(event)
                self._waiting = []
                self.changes.tell()
                await self._pass_on(there, queue, receive, send)
            await self._hears_of_the_end()
        except httpx2.TransportError:
            """crabline is down, or went."""
        finally:
            self._listeners.discard(queue)
            self.changes.tell()
        with contextlib.suppress(RuntimeError):
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _hears_of_the_end(self) -> None:
        """Let crabline come round to a stream that is over: what it tells before it does is lost."""
        asks = {"jsonrpc": "2.0", "id": 1, "method": "version"}
        for _ in range(2):
            await self._client.post(f"{self.signal.url}/api/v1/rpc", json=asks)

    async def _pass_on(self, there: httpx2.Response, queue: asyncio.Queue[Any], receive: Any, send: Any) -> None:
        async def pump() -> None:
            with contextlib.suppress(httpx2.TransportError):
                async for line in there.aiter_lines():
                    if line.startswith("data:"):
                        queue.put_nowait(self._doctor(json.loads(line.removeprefix("data:"))))
            queue.put_nowait(None)

        async def gone() -> None:
            while (await receive())["type"] != "http.disconnect":
                """More of a body that is empty."""
            queue.put_nowait(None)

        tasks = [asyncio.create_task(pump()), asyncio.create_task(gone())]
        try:
            while (event := await queue.get()) is not None:
                self.told.append(event)
                told = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
                body = f"event:receive\ndata:{told}\n\n".encode(errors="surrogatepass")
                await send({"type": "http.response.body", "body": body, "more_body": True})
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def _doctor(self, event: Json) -> Any:
        waiting = self._doctored.get(event["envelope"]["dataMessage"]["message"])
        event = {"account": NUMBER, **event}
        return waiting.pop(0)(event) if waiting else event

    def tell(self, event: Any) -> None:
        """Something that crabline has never heard of."""
        for queue in self._listeners:
            queue.put_nowait(event)
        if not self._listeners:
            self._waiting.append(event)

    def tell_again(self) -> None:
        """All that was told is told once more."""
        for event in list(self.told):
            self.tell(event)

    def read(self, at: Address | str) -> list[Seen]:
        """All that the account has said somewhere and didn't delete."""
        chat = at if isinstance(at, str) else at.chat
        return [Seen(id, text) for id, text in self._sent.get(chat, {}).items()]

    def texts(self, chat: str) -> list[str]:
        return [seen.text for seen in self.read(chat)]

    async def shows(self, chat: str, *wanted: str) -> None:
        """Wait until the account has said just this there."""
        await self.changes.until(
            lambda: self.texts(chat) == list(wanted) or None,
            lambda: f"{wanted!r} never; there are {self.texts(chat)!r}",
        )

    def group(self) -> str:
        """A new group."""
        return base64.b64encode(f"group/{next(self._groups):026}".encode()).decode()

    async def says(
        self, text: str, who: str | Someone = "Ann", group: str = "", doctor: Doctor | None = None, name: str = ""
    ) -> str:
        """A person writes; returns the message's id."""
        someone = PEOPLE[who] if isinstance(who, str) else who
        if doctor is not None:
            self._doctored.setdefault(text, []).append(doctor)
        body: Json = {"text": text, "sourceName": name or (who if isinstance(who, str) else "")}
        body |= {"groupId": group} if group else {}
        body |= {"sourceUuid": someone.uuid} if someone.uuid else {}
        body |= {"sourceNumber": someone.number} if someone.number else {}
        headers = {"Authorization": f"Bearer {ADMIN}"}
        answer = await self._client.post(f"{self.signal.url}/crabline/signal/inbound", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        return f"{answer.json()['event']['envelope']['timestamp']}.{someone.uuid or someone.number}"


def with_data(**more: Any) -> Doctor:
    """Makes more of a plain message."""

    def doctor(event: Json) -> Json:
        data = {**event["envelope"]["dataMessage"], **more}
        return {**event, "envelope": {**event["envelope"], "dataMessage": data}}

    return doctor


def edited(message: str) -> Doctor:
    """Makes an edit of a plain message."""

    def doctor(event: Json) -> Json:
        envelope = dict(event["envelope"])
        data = envelope.pop("dataMessage")
        edit = {"targetSentTimestamp": int(message.partition(".")[0]), "dataMessage": data}
        return {**event, "envelope": {**envelope, "editMessage": edit}}

    return doctor


def quoting(message: str, text: str = "") -> Doctor:
    """Makes a plain message answer another: the account's own, unless the id names an author."""
    at, _, author = message.partition(".")
    by = {"authorUuid": author or OWN, "authorNumber": None if author else NUMBER}
    return with_data(quote={"id": int(at), "author": author or NUMBER, **by, "text": text, "attachments": []})


def mentioning(start: int = 0) -> Doctor:
    """Makes a plain message mention the account: the one character there stands for it."""
    mention = {"name": NUMBER, "number": NUMBER, "uuid": OWN, "start": start, "length": 1}
    return with_data(mentions=[mention])


def _whom(params: Json) -> str:
    to = params.get("groupId") or params["recipient"]
    return str(to if isinstance(to, str) else to[0])


@asynccontextmanager
async def signal(folder: Path) -> AsyncIterator[tuple[Between, str]]:
    """Signal as an adapter sees it: what stands between, and the address of the daemon."""
    server = Crabline("signal", folder, adminToken=ADMIN, account=NUMBER)
    await server.start()
    between, listener = Between(server), Listener("127.0.0.1", 0)
    try:
        async with serving(Mounted(between), listener, 0.1):
            yield between, listener.url
            between.end()
    finally:
        await between.close()
        await server.stop()
