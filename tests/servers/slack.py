"""local-slack on loopback, and what it can't do put in on the way.

`LocalSlack` is the program itself. `Between` stands between it and an app: it keeps the metadata of messages, tells
again what wasn't acknowledged, as Slack does, signs what it passes on, refuses calls the way Slack does, and can be
cut off. Of streams and of the agent view local-slack knows nothing: `_Agents` does what Slack's documentation says.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import html
import json
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import httpx2
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from segue.adapters.slack.account import SCOPES
from segue.adapters.slack.adapter import signature
from segue.core.lanes import Address
from segue.core.messages import PLACEHOLDER
from segue.core.values import Secret
from segue.runtime.server.app import Mounted
from segue.runtime.server.listeners import Listener, serving
from segue.testing.harness import Seen
from segue.testing.waits import Changes
from tests.clients import http_client
from tests.ports import free_port
from tests.servers import local_slack

TOKEN, APP_TOKEN, SIGNING = "xoxb-test-token", "xapp-test-token", "test-signing-secret"
BOT = "U0BOT"
PEOPLE = {"Ann": "U0ANN", "Ben": "U0BEN"}
_CHANNELS = 30
_WRITES = {"chat.postMessage", "chat.update", "chat.stopStream"}
_PATIENCE = 60.0


class LocalSlack:
    """local-slack, serving one workspace; it ends with this process, however this one ends."""

    def __init__(self, port: int, *, calls: bool) -> None:
        self.between = port
        """The port at which it calls."""
        self.port = free_port()
        self.host = f"127.0.0.1:{self.port}"
        self._folder = tempfile.TemporaryDirectory(prefix="local-slack-")
        app = {"botUserId": BOT, "botName": "segue", "botToken": TOKEN, "appToken": APP_TOKEN, "signingSecret": SIGNING}
        app |= {"mode": "events", "requestUrl": f"http://127.0.0.1:{port}/called"} if calls else {"mode": "socket"}
        people = [{"id": id, "name": name, "real_name": name} for name, id in PEOPLE.items()]
        members = [*PEOPLE.values(), BOT]
        channels = [{"id": f"C0{n:03}", "name": f"channel-{n}", "members": members} for n in range(_CHANNELS)]
        config = Path(self._folder.name) / "config.json"
        config.write_text(json.dumps({"apps": [app], "users": people, "channels": channels}))
        options = ("--config", config, "--port", str(self.port), "--base-host", "127.0.0.1")
        # The shell waits for the end of its input, which comes when this process ends.
        self._process = subprocess.Popen(
            ["sh", "-c", '"$@" & read _; kill -9 $!', "sh", local_slack(), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        atexit.register(self._end)

    async def fresh(self, client: httpx2.AsyncClient) -> None:
        """Wait until it is there, and let it forget all that was said."""
        async with asyncio.timeout(_PATIENCE):
            while True:
                with contextlib.suppress(httpx2.TransportError):
                    await client.post(f"http://{self.host}/_control/reset")
                    return
                await asyncio.sleep(0.02)

    def _end(self) -> None:
        with self._process:
            self._process.kill() if self._process.stdin is None else self._process.stdin.close()
        self._folder.cleanup()


@functools.cache
def _local_slack(*, calls: bool) -> LocalSlack:
    return LocalSlack(free_port(), calls=calls)


class _Agents:
    """Streams and agent sessions, from Slack's documentation; what a stream holds is a message of local-slack's."""

    def __init__(self, between: Between) -> None:
        self.titles: dict[str, str] = {}
        """Titles of threads, by their roots."""
        self.statuses: list[tuple[str, str]] = []
        self.streams: dict[str, str] = {}
        """The texts of streams that go on, by their messages."""
        self.steps: list[tuple[str, str]] = []
        """What was shown as a task, with its status."""
        self.states: dict[str, str] = {}
        self._between = between

    async def answer(self, method: str, fields: dict[str, str]) -> dict[str, Any] | None:
        """The answer to a method that local-slack doesn't know."""
        match method:
            case "agents.sessions.setStatus":
                self.statuses.append((fields["thread_ts"], fields["status"]))
                if "title" in fields:
                    self.titles.setdefault(fields["thread_ts"], fields["title"])
            case "agents.sessions.rename":
                self.titles[fields["thread_ts"]] = fields["title"]
            case "chat.startStream":
                return await self._start(fields)
            case "chat.appendStream" | "chat.stopStream" if fields["ts"] not in self.streams:
                return {"ok": False, "error": "message_not_in_streaming_state"}
            case "chat.appendStream" | "chat.stopStream":
                await self._append(fields)
                if method == "chat.stopStream":
                    self.stop(fields["ts"])
                    self.statuses.append(("", fields.get("session_status", "")))
            case "chat.update" if fields["ts"] in self.streams:
                return {"ok": False, "error": "streaming_state_conflict"}
            case _:
                return None
        return {"ok": True, "ts": fields.get("ts", "")}

    def stop(self, ts: str) -> None:
        """Let a stream be over."""
        del self.streams[ts]
        self.states[ts] = "completed"

    async def _start(self, fields: dict[str, str]) -> dict[str, Any]:
        for wanted in ("recipient_user_id", "recipient_team_id"):
            if wanted not in fields and not fields["channel"].startswith("D"):
                return {"ok": False, "error": f"missing_{wanted}"}
        about = {"channel": fields["channel"], "thread_ts": fields["thread_ts"], "text": PLACEHOLDER}
        begun: dict[str, Any] = await self._between.ask("chat.postMessage", **about)
        self.streams[begun["ts"]], self.states[begun["ts"]] = "", "in_progress"
        return {"ok": True, "ts": begun["ts"], "channel": fields["channel"]}

    async def _append(self, fields: dict[str, str]) -> None:
        ts = fields["ts"]
        for chunk in json.loads(fields.get("chunks", "[]")):
            if chunk["type"] == "task_update":
                self.steps.append((chunk["title"], chunk["status"]))
            else:
                self.streams[ts] += chunk["text"]
        await self._between.ask("chat.update", channel=fields["channel"], ts=ts, text=self.streams[ts] or PLACEHOLDER)


class Between:
    """Passes calls on to local-slack, and what happens there to the app."""

    def __init__(self, server: LocalSlack, host: str) -> None:
        self.slack = server
        self.host = host
        self.calls: list[tuple[str, dict[str, str]]] = []
        """What the app called, in order."""
        self.refuse: Callable[[str, dict[str, str]], Response | None] = lambda _method, _fields: None
        """Answers a call instead of local-slack."""
        self.waits: dict[str, asyncio.Event] = {}
        """Methods that aren't answered yet."""
        self.scopes = ",".join(SCOPES)
        self.webhook = ""
        """Where the app is called, if it is."""
        self.down = False
        """Nobody gets through, and what happens meanwhile isn't told."""
        self.told: list[tuple[str, Any]] = []
        """What was delivered to the app: its kind and content."""
        self.changes = Changes()
        self._greeted = False
        self.pending: dict[str, str] = {}
        """Envelopes that weren't acknowledged."""
        self._queue: asyncio.Queue[tuple[bytes, str]] = asyncio.Queue()
        self._sockets: dict[WebSocket, ClientConnection] = {}
        """The app's, and each one's own to local-slack."""
        self._metadata: dict[tuple[str, str], Any] = {}
        self.agents = _Agents(self)
        self._spoken = 0
        self.client = http_client(timeout=60)
        self._calling = asyncio.create_task(self._call())

    async def close(self) -> None:
        self._calling.cancel()
        await asyncio.wait([self._calling])
        await self.client.aclose()

    @property
    def listeners(self) -> int:
        """Sockets of the app's that are open."""
        return len(self._sockets)

    async def cut(self) -> None:
        """Cut the app off."""
        self.down = True
        for socket, there in list(self._sockets.items()):
            await there.close()
            with contextlib.suppress(RuntimeError):
                await socket.close(1012)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await self._socket(WebSocket(scope, receive, send))
            return
        try:
            answer = await self._answer(Request(scope, receive))
        except ClientDisconnect:
            return  # killed while it was calling
        await answer(scope, receive, send)

    def _here(self, said: str) -> str:
        """What local-slack says of itself, as if it were here."""
        return said.replace(self.slack.host, self.host)

    async def _answer(self, request: Request) -> Response:
        raw = await request.body()
        path, kind = request.url.path, request.headers.get("Content-Type", "")
        if path == "/called":
            self._queue.put_nowait((raw, kind))
            return Response()
        if self.down:
            return Response("down", 503)
        method, fields = path.removeprefix("/api/"), dict(parse_qsl(raw.decode())) if "urlencoded" in kind else {}
        if path.startswith("/api/"):
            self.calls.append((method, fields))
            self.changes.tell()
            if method in self.waits:
                await self.waits[method].wait()
            if instead := self.refuse(method, fields):
                return instead
            if (said := await self.agents.answer(method, fields)) is not None:
                self.changes.tell()
                return JSONResponse(self._with_metadata(method, fields, said))
        headers = {name: request.headers[name] for name in ("content-type", "authorization") if name in request.headers}
        url = f"http://{self.slack.host}{path}"
        passed = await self.client.request(request.method, url, content=raw, headers=headers)
        if not path.startswith("/api/"):
            return Response(passed.content, passed.status_code)
        answer = self._with_metadata(method, fields, json.loads(self._here(passed.text)))
        self.changes.tell()
        return Response(json.dumps(answer), 200, {"X-OAuth-Scopes": self.scopes}, "application/json")

    def _with_metadata(self, method: str, fields: dict[str, str], answer: dict[str, Any]) -> dict[str, Any]:
        """Remember what local-slack forgets."""
        if method in _WRITES and answer["ok"] and "metadata" in fields:
            self._metadata[fields["channel"], answer["ts"]] = json.loads(fields["metadata"])
        if method in {"conversations.history", "conversations.replies"}:
            for message in answer.get("messages", ()):
                if known := self._metadata.get((fields["channel"], message["ts"])):
                    message["metadata"] = known
                if state := self.agents.states.get(message["ts"]):
                    message["streaming_state"] = state
        return answer

    async def _socket(self, socket: WebSocket) -> None:
        """A socket of the app's; a lost envelope comes again on the next one."""
        await socket.accept()
        if self.down:
            await socket.close(1012)
            return
        async with connect(f"ws://{self.slack.host}{socket.url.path}", close_timeout=0.1) as there:
            self._sockets[socket] = there
            self.changes.tell()
            pump = asyncio.create_task(self._pump(there, socket))
            try:
                while True:
                    self.pending.pop(json.loads(await socket.receive_text()).get("envelope_id"), None)
                    self.changes.tell()
            except (WebSocketDisconnect, RuntimeError):
                """The app hung up, or was cut off."""
            finally:
                del self._sockets[socket]
                pump.cancel()
                await asyncio.wait([pump])

    async def _pump(self, there: ClientConnection, socket: WebSocket) -> None:
        with contextlib.suppress(ConnectionClosed, RuntimeError, WebSocketDisconnect):
            async for raw in there:
                envelope = json.loads(self._here(str(raw)))
                if id := envelope.get("envelope_id"):
                    # local-slack waits for five seconds, and knows no second try.
                    await there.send(json.dumps({"envelope_id": id}))
                    if self.down:
                        continue
                    self.pending[id] = json.dumps(envelope)
                    self.told.append((envelope["type"], envelope["payload"]))
                await socket.send_text(json.dumps(envelope))
                if envelope["type"] == "hello":
                    self._greeted = True
                    self.changes.tell()
                    for lost in list(self.pending.values()):
                        await socket.send_text(lost)

    async def listened(self) -> None:
        """Wait until the app listens, or is called: what is said from now on is for it."""
        await self.changes.until(lambda: self._greeted or bool(self.webhook) or None, lambda: "it never connected")

    async def deliver(self, kind: str, payload: Any) -> None:
        """Something that local-slack has never heard of, or has told already."""
        if self.webhook:
            self._queue.put_nowait((json.dumps(payload).encode(), "application/json"))
            return
        self._spoken += 1
        envelope = {"envelope_id": f"again-{self._spoken}", "type": kind, "payload": payload}
        for socket in self._sockets:
            await socket.send_text(json.dumps(envelope))

    async def happens(self, event: dict[str, Any]) -> None:
        """An event that local-slack has never heard of."""
        self._spoken += 1
        await self.deliver("events_api", {"type": "event_callback", "event_id": f"Ev{self._spoken}", "event": event})

    async def _call(self) -> None:
        """Call the app with one thing after the other, until it takes it."""
        while True:
            raw, kind = await self._queue.get()
            body = self._here(raw.decode()).encode()
            if "json" in kind:
                self.told.append(("events_api", json.loads(body)))
            while not self.down and not await self._taken(body, kind):  # noqa: ASYNC110 -- it is tried again
                await asyncio.sleep(0.02)

    async def _taken(self, body: bytes, kind: str) -> bool:
        at = str(int(time.time()))
        shown = {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": signature(Secret(SIGNING), at, body)}
        with contextlib.suppress(httpx2.TransportError):
            answer = await self.client.post(self.webhook, content=body, headers={**shown, "Content-Type": kind})
            return answer.status_code == 200
        return False

    async def control(self, what: str, **body: Any) -> Any:
        """Do something as a person does."""
        answer = await self.client.post(f"http://{self.slack.host}/_control/{what}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def says(self, chat: str, text: str, who: str = "Ann", thread: str = "") -> str:
        """A person writes; returns the message's time."""
        typed = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        about = {"thread_ts": thread} if thread else {}
        told = await self.control("message", channel=chat, user=PEOPLE[who], text=typed, **about)
        return str(told["message"]["ts"])

    async def attach(self, chat: str, name: str, content: bytes, who: str, thread: str = "") -> str:
        """A person sends a file."""
        about = {"channel": chat, "user": PEOPLE[who], **({"thread_ts": thread} if thread else {})}
        url = f"http://{self.slack.host}/_control/upload"
        answer = await self.client.post(url, data=about, files={"file": (name, content, "image/png")})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["message"]["ts"])

    async def private(self, who: str) -> str:
        """The private chat of a person with the app."""
        return str((await self.ask("conversations.open", users=PEOPLE[who]))["channel"]["id"])

    async def messages(self, at: Address) -> list[dict[str, Any]]:
        """Everything that the app has said somewhere, the oldest first."""
        if at.thread:
            told = (await self.ask("conversations.replies", channel=at.chat, ts=at.thread))["messages"]
        else:
            told = reversed((await self.ask("conversations.history", channel=at.chat, limit="999"))["messages"])
        return [one for one in told if one.get("bot_id") and one["ts"] != at.thread]

    async def read(self, at: Address, who: str = "") -> list[Seen]:
        """What the app has said somewhere, as everybody sees it, or one person."""
        seen = {None, PEOPLE.get(who)}
        found = [one for one in await self.messages(at) if one.get("ephemeral_to") in seen]
        return [Seen(one["ts"], html.unescape(one["text"])) for one in found]

    async def ask(self, method: str, **fields: str) -> Any:
        """The answer of local-slack itself."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        answer = await self.client.post(f"http://{self.slack.host}/api/{method}", data=fields, headers=headers)
        return answer.json()


@asynccontextmanager
async def slack(*, calls: bool = False) -> AsyncIterator[tuple[Between, str]]:
    """Slack as an app sees it: what stands between, and the address of its API."""
    server = _local_slack(calls=calls)
    # Only what it calls must be where it was told.
    listener = Listener("127.0.0.1", server.between if calls else 0)
    between = Between(server, listener.url.removeprefix("http://"))
    try:
        await server.fresh(between.client)
        async with serving(Mounted(between), listener, 0.1):
            yield between, f"{listener.url}/api"
            await between.cut()
    finally:
        await between.close()
