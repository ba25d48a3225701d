"""Discord on loopback: simcord's API behind real HTTP, and a gateway before it, so that any process can connect.

simcord, which others wrote, says what each call does and what is told of it. Ours are the wire (HELLO, IDENTIFY,
HEARTBEAT, RESUME with replay, INVALID SESSION, zlib-stream) and the nonces, which simcord ignores.
"""

import asyncio
import contextlib
import json
import time
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from io import BytesIO
from types import SimpleNamespace
from typing import Any

from aiohttp import WSMsgType, web
from simcord import BackendError
from simcord._clock import Clock
from simcord.backend import Backend, serializers
from simcord.backend.cdn import CDN_BASE
from simcord.backend.models import Message
from simcord.http import client  # noqa: F401 -- importing it is what makes the API know its routes
from simcord.http.router import dispatch
from simcord.intents import required_intent
from simcord.interactions import base_payload

from segue.adapters.discord.api import INTENTS
from segue.testing.waits import Changes
from tests.ports import free_port

TOKEN = "MTIzNDU2Nzg5MDEyMzQ1Njc4.simcord.token"
_API = "/api/v10"
_READS = 1 << 18
_SILENT = 18
"""The type of the message that tells of a thread."""

_GARBLED: list[Any] = [{"id": [], "channel_id": 5}, {"id": "x", "channel_id": "y", "author": {"id": "z"}}, []]


class _Today(Clock):
    def now(self) -> datetime:
        return datetime.now(UTC)


class _Session:
    """A session of the gateway's: all that it was told, and the connection that it has now."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.line: _Line | None = None

    def tell(self, event: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        frame = {"op": 0, "t": event, "s": len(self.told) + 1, "d": json.loads(json.dumps(payload))}
        self.told.append(frame)
        return frame


class _Line:
    """One connection; what is sent goes out in order."""

    def __init__(self, socket: web.WebSocketResponse, *, compressed: bool) -> None:
        self.socket = socket
        self._zlib = zlib.compressobj() if compressed else None
        self._waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def send(self, frame: dict[str, Any]) -> None:
        self._waiting.put_nowait(frame)

    async def write(self) -> None:
        while True:
            text = json.dumps(await self._waiting.get())
            with contextlib.suppress(ConnectionError):
                if self._zlib is None:
                    await self.socket.send_str(text)
                else:
                    await self.socket.send_bytes(
                        self._zlib.compress(text.encode()) + self._zlib.flush(zlib.Z_SYNC_FLUSH)
                    )


class LocalDiscord:
    """A guild with Ann and Ben, and their private chats with the bot."""

    def __init__(self, port: int) -> None:
        self.backend = Backend(clock=_Today())
        self.port = port
        self.changes = Changes()
        self.reads = True
        """Whether the bot may read messages."""
        self.away = False
        """Whether nobody can connect."""
        self.identified = 0
        self.resumed = 0
        self.acknowledged: list[dict[str, Any]] = []
        self.called: list[tuple[str, float]] = []
        """The paths of calls, and when they came."""
        self.limits: dict[str, str] = {}
        """Headers that tell how many more calls are allowed."""
        self.forbidden = ""
        """The end of paths at which the bot may write nothing."""
        self.late = False
        """Whether every slash command is older than the quarter of an hour in which it can be answered."""
        self.broken = False
        """Whether no file can be had now."""
        self.patience = 0.0
        """Seconds for which calls are refused, if they are."""
        self.patience_everywhere = False
        """Whether that holds for all calls, not only for those of the same route."""
        self._sessions: dict[str, _Session] = {}
        self._nonces: dict[tuple[str, str], Any] = {}
        self.people = {name: self.backend.make_user(name.lower(), global_name=name) for name in ("Ann", "Ben")}
        self.guild = self.backend.create_guild("The Club")
        for user in self.people.values():
            self.backend.add_member(self.guild.id, user.id)
        self.backend.subscribers.append(self._tell)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{_API}"

    def channel(self, name: str = "general", **more: Any) -> str:
        """A new channel of the guild."""
        return str(self.backend.create_channel(self.guild.id, name, **more).id)

    def private(self, who: str = "Ann") -> str:
        """Somebody's private chat with the bot."""
        return str(self.backend.get_dm_channel(self.people[who].id).id)

    def says(self, channel: str, text: str, who: str = "Ann", **more: Any) -> str:
        """Somebody writes; returns the message's id."""
        return str(self.backend.create_message(int(channel), self.people[who].id, text, **more).id)

    def answers(self, channel: str, message: str, text: str, who: str = "Ann") -> str:
        """Somebody replies to a message."""
        reference = {"channel_id": channel, "message_id": message}
        known = self.backend.normalize_message_reference(int(channel), reference)
        return self.says(channel, text, who, reference=known)

    def slash(self, channel: str, name: str, text: str = "", who: str = "Ann") -> str:
        """Somebody uses a slash command; returns the id of it."""
        options = [{"name": "text", "type": 3, "value": text}] if text else []
        return self._interacts(2, channel, {"id": "1", "name": name, "type": 1, "options": options}, who)

    def presses(self, channel: str, message: str, choice: str, who: str = "Ann") -> str:
        """Somebody presses a button."""
        found = self.backend.get_message(int(channel), int(message))
        shown = [button["custom_id"] for row in found.components for button in row["components"]]
        assert choice in shown, f"there is no button {choice!r}; there are {shown}"
        return self._interacts(3, channel, {"custom_id": choice, "component_type": 2}, who, found)

    def _interacts(
        self, kind: int, channel: str, data: dict[str, Any], who: str, message: Message | None = None
    ) -> str:
        guild = self.backend.get_channel(int(channel)).guild_id
        record, payload = base_payload(
            self.backend,
            type=kind,
            channel_id=int(channel),
            guild_id=guild,
            user_id=self.people[who].id,
            data=data,
        )
        if message is not None:
            record.source_message_id = message.id
            payload["message"] = serializers.message_payload(self.backend, message)
        self.backend.emit("INTERACTION_CREATE", payload)
        return str(record.id)

    def seen(self, channel: str, who: str = "") -> list[Message]:
        """The bot's messages in a channel, the oldest first; with those that only this person sees."""
        user = self.people[who].id if who else 0
        found = sorted(self.backend.messages[int(channel)].values(), key=lambda message: message.id)
        mine = [one for one in found if one.author_id == self.backend.bot_user.id and one.type != _SILENT]
        return [one for one in mine if not one.is_ephemeral or self._asked(one) == user]

    def _asked(self, message: Message) -> int:
        """Who used the slash command that a message answers."""
        return int((message.interaction_metadata or {}).get("user", {}).get("id", 0))

    async def cut(self) -> None:
        """Break every connection, and let nobody connect."""
        self.away = True
        for session in self._sessions.values():
            if session.line is not None:
                await session.line.socket.close(code=1001)

    def forget(self) -> None:
        """Know no session any more: nobody can resume."""
        self._sessions.clear()

    def tell_again(self) -> None:
        """Tell every message once more."""
        for session in self._sessions.values():
            for frame in list(session.told):
                if frame["t"] == "MESSAGE_CREATE":
                    self._out(session, "MESSAGE_CREATE", frame["d"])

    def garble(self) -> None:
        """Tell something that can't be understood."""
        for session in self._sessions.values():
            for event in ("MESSAGE_CREATE", "MESSAGE_DELETE", "THREAD_UPDATE", "GUILD_CREATE", "INTERACTION_CREATE"):
                for wrong in _GARBLED:
                    self._out(session, event, wrong)

    def _tell(self, event: str, payload: Mapping[str, Any]) -> None:
        gate = required_intent(event, payload)
        if gate is None or getattr(INTENTS, gate):
            for session in self._sessions.values():
                self._out(session, event, payload)
        self.changes.tell()

    def _out(self, session: _Session, event: str, payload: Mapping[str, Any]) -> None:
        frame = session.tell(event, json.loads(self._rewritten(payload)))
        if session.line is not None:
            session.line.send(frame)

    def _rewritten(self, payload: object) -> str:
        return json.dumps(payload).replace(CDN_BASE, f"http://127.0.0.1:{self.port}/cdn")

    # The wire

    async def api(self, request: web.Request) -> web.Response:
        if self.away:
            raise web.HTTPServiceUnavailable
        path = request.path.removeprefix(_API)
        if request.headers.get("Authorization") != f"Bot {TOKEN}":
            return _json(401, {"message": "401: Unauthorized", "code": 0})
        self.called.append((path, time.monotonic()))
        if (refused := self._refused(request.method, path)) is not None:
            return refused
        if path == "/gateway/bot":
            return _json(200, {"url": f"ws://127.0.0.1:{self.port}/gateway", "shards": 1})
        body, files = await _body(request)
        key = (path, body.get("nonce", "")) if isinstance(body, dict) and body.get("enforce_nonce") else None
        if key in self._nonces:
            return _json(200, self._nonces[key])
        try:
            found = dispatch(self.backend, request.method, path, json=body, params=dict(request.query), files=files)
        except BackendError as error:
            return _json(error.status, error.to_json())
        finally:
            self.changes.tell()
        if path == "/oauth2/applications/@me":
            found["flags"] = _READS if self.reads else 0
        if path.endswith("/callback"):
            self.acknowledged.append(body)
        if key is not None:
            self._nonces[key] = found
        answer = web.Response(status=204) if found is None else _json(200, json.loads(self._rewritten(found)))
        answer.headers.update(self.limits)
        return answer

    def _refused(self, method: str, path: str) -> web.Response | None:
        """The answer to a call that isn't let through."""
        if self.forbidden and method == "POST" and path.endswith(self.forbidden):
            return _json(403, {"message": "Missing Permissions", "code": 50013})
        if self.late and path.startswith("/webhooks/"):
            return _json(401, {"message": "Invalid Webhook Token", "code": 50027})
        if not self.patience:
            return None
        told = {"message": "You are being rate limited.", "retry_after": self.patience}
        told["global"] = self.patience_everywhere
        refused = _json(429, told)
        refused.headers["Via"] = "1.1 google"  # else the library takes it for a ban
        return refused

    def forget_nonces(self) -> None:
        """Let the minutes pass for which Discord knows a nonce."""
        self._nonces.clear()

    async def cdn(self, request: web.Request) -> web.Response:
        if self.broken:
            raise web.HTTPServiceUnavailable
        blob = self.backend.cdn.get(CDN_BASE + request.path.removeprefix("/cdn"))
        return web.Response(body=blob) if blob is not None else web.Response(status=404)

    async def gateway(self, request: web.Request) -> web.StreamResponse:
        if self.away:
            raise web.HTTPServiceUnavailable
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        line = _Line(socket, compressed=request.query.get("compress") == "zlib-stream")
        writing = asyncio.create_task(line.write())
        line.send({"op": 10, "d": {"heartbeat_interval": 41_250}})
        session = None
        try:
            async for frame in socket:
                if frame.type is not WSMsgType.TEXT:
                    break
                said = json.loads(frame.data)
                if said["op"] == 1:
                    line.send({"op": 11})
                elif said["op"] in {2, 6} and said["d"]["token"] != TOKEN:
                    await socket.close(code=4004)
                elif said["op"] == 2 and not self.reads:
                    await socket.close(code=4014)
                elif said["op"] == 2:
                    session = self._identify(line)
                elif said["op"] == 6:
                    session = self._resume(line, said["d"])
        finally:
            if session is not None and session.line is line:
                session.line = None
            writing.cancel()
        return socket

    def _identify(self, line: _Line) -> _Session:
        self.identified += 1
        session, id = _Session(), f"session-{self.identified}"
        self._sessions[id], session.line = session, line
        self._out(
            session,
            "READY",
            {
                "v": 10,
                "user": dict(serializers.user_payload(self.backend.bot_user)),
                "guilds": [{"id": str(id), "unavailable": True} for id in self.backend.guilds],
                "session_id": id,
                "resume_gateway_url": f"ws://127.0.0.1:{self.port}/gateway",
                "application": {"id": str(self.backend.application_id), "flags": 0},
            },
        )
        self.changes.tell()
        for guild in self.backend.guilds.values():
            since = guild.members[self.backend.bot_user.id].joined_at
            self._out(
                session, "GUILD_CREATE", {**serializers.guild_create_payload(self.backend, guild), "joined_at": since}
            )
        return session

    def _resume(self, line: _Line, said: dict[str, Any]) -> _Session | None:
        session = self._sessions.get(said["session_id"])
        if session is None:
            line.send({"op": 9, "d": False})
            return None
        self.resumed += 1
        for frame in session.told[said["seq"] :]:
            line.send(frame)
        session.line = line
        self._out(session, "RESUMED", {})
        self.changes.tell()
        return session


async def _body(request: web.Request) -> tuple[Any, list[Any]]:
    """The JSON of a call, and the files in it."""
    if request.content_type != "multipart/form-data":
        return (await request.json() if request.can_read_body else None), []
    form = await request.post()
    uploads = [value for value in form.values() if isinstance(value, web.FileField)]
    files = [SimpleNamespace(fp=BytesIO(f.file.read()), filename=f.filename, description=None) for f in uploads]
    return json.loads(str(form["payload_json"])), files


def _json(status: int, told: object) -> web.Response:
    # The library takes only this for JSON, without a charset.
    return web.Response(status=status, body=json.dumps(told).encode(), headers={"Content-Type": "application/json"})


@asynccontextmanager
async def local_discord() -> AsyncIterator[LocalDiscord]:
    """Discord, as long as the block lasts."""
    town = LocalDiscord(free_port())
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", f"{_API}/{{path:.*}}", town.api)
    app.router.add_get("/cdn/{path:.*}", town.cdn)
    app.router.add_get("/gateway", town.gateway)
    app.router.add_get("/gateway/", town.gateway)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", town.port).start()
    try:
        yield town
    finally:
        await town.cut()
        await runner.cleanup()
