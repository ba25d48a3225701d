"""crabline's Feishu on loopback, and what it can't do put in on the way.

crabline knows tokens, the long connection (and checks each acknowledgement and ping on it), and how plain messages,
rich texts and answers are sent and fetched. It knows no webhook, no keys of messages, no threads, edits, recalls,
files, cards, names or histories: `Between` has those, made after Feishu's public documentation, so what it says of
them is no proof of how Feishu behaves. It stands between crabline and an app, keeps what was said, tells again what
wasn't acknowledged, encrypts and signs what it passes on to a webhook, refuses calls the way Feishu does, and can be
cut off.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import email
import hashlib
import html
import itertools
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7
from msgspec.structs import replace
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from segue.adapters.feishu.api import NEEDED
from segue.adapters.feishu.sockets import DATA, Frame, decode, encode
from segue.core.lanes import Address
from segue.runtime.server.app import Mounted
from segue.runtime.server.listeners import Listener, serving
from segue.testing.harness import Seen
from segue.testing.waits import Changes
from tests.clients import http_client
from tests.servers.providers import Crabline

APP, SECRET = "cli_00112233445566aa", "secret-of-the-app"
TOKEN, KEY = "verification-token", "key-of-the-test"
ADMIN, BOT = "admin-of-the-test", "ou_bot"
PEOPLE = {"Ann": "ou_ann", "Ben": "ou_ben"}
NOWHERE = "oc_nowhere"
_LARGEST = 30 * 1024
_MOST_EDITS = 20
_MESSAGES = "/open-apis/im/v1/messages"
_CARDS = "/open-apis/cardkit/v1/cards"
Doctor = Callable[[dict[str, Any]], Any]
Told = dict[str, Any]


class Said:
    """A message as it stands now."""

    def __init__(self, id: str, chat: str, root: str, by: str) -> None:
        self.id = id
        self.chat = chat
        self.root = root
        """The root of its thread."""
        self.by = by
        self.kind = "post"
        self.content: dict[str, Any] = {}
        self.card = ""
        self.parent = ""
        self.at = time.time()
        self.edits = 0
        self.changed = 0.0
        """When it was edited last."""
        self.gone = False


class Between:
    """Passes calls on to crabline, and what happens there to the app."""

    def __init__(self, server: Crabline, host: str) -> None:
        self.crabline = server
        self.host = host
        self.calls: list[tuple[str, str, Told]] = []
        """What the app called, in order: method, path and body."""
        self.refuse: Callable[[str, str, Told], Response | None] = lambda _method, _path, _body: None
        """Answers a call instead of crabline."""
        self.taken: Callable[[str, str], None] = lambda _method, _path: None
        """Is told of a call that was taken, before the app hears that it was."""
        self.webhook = ""
        """Where the app is called, if it is."""
        self.down = False
        self.told: list[Any] = []
        """The events that were delivered to the app."""
        self.said: dict[str, Said] = {}
        self.cards: dict[str, Told] = {}
        self.resources: dict[str, bytes] = {}
        self.scopes = {names[0] for names in NEEDED}
        self.p2p: dict[str, str] = {}
        self.topics: set[str] = set()
        """Groups in which each message begins a thread."""
        self.shows_groups = True
        """Whether the app may read what was said in groups."""
        self.changes = Changes()
        self.refused: list[int] = []
        """What webhook calls were answered with, other than 200."""
        self._keys: dict[str, Told] = {}
        self._doctored: dict[str, Doctor] = {}
        self.pending: dict[str, list[bytes]] = {}
        """Frames that weren't acknowledged, by their event."""
        self._sockets: dict[WebSocket, tuple[ClientConnection, set[str]]] = {}
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self._numbers = itertools.count(1)
        self.client = http_client(timeout=60)
        self._tasks = [asyncio.create_task(self._call())]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await self.client.aclose()

    async def cut(self) -> None:
        """Cut the app off."""
        self.down = True
        for socket, (there, _) in list(self._sockets.items()):
            await there.close()
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):
                await socket.close(1012)

    @property
    def listeners(self) -> int:
        """Connections of the app's that are open."""
        return len(self._sockets)

    def forget_keys(self) -> None:
        """An hour has passed."""
        self._keys.clear()
        for said in self.said.values():
            said.at -= 3600

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await self._socket(WebSocket(scope, receive, send))
            return
        try:
            answer = await self._answer(Request(scope, receive))
        except ClientDisconnect:
            return  # killed while it was calling
        except httpx2.TransportError:
            answer = Response("down", 502)
        await answer(scope, receive, send)

    # Calls of the app's.

    async def _answer(self, request: Request) -> Response:
        raw, method, path = await request.body(), request.method, request.url.path
        if self.down:
            return Response("down", 503)
        multipart = "multipart" in request.headers.get("Content-Type", "")
        body = _form(request.headers["Content-Type"], raw) if multipart else json.loads(raw or b"{}")
        self.calls.append((method, path, body))
        self.changes.tell()
        if instead := self.refuse(method, path, body):
            return instead
        answer = await self._itself(method, path, body, dict(request.query_params)) or await self._passed(
            request, method, path, body
        )
        self.taken(method, path)
        self.changes.tell()
        return answer

    async def _passed(self, request: Request, method: str, path: str, body: Told) -> Response:
        """Let crabline answer; what it doesn't take goes as a text that names it."""
        sends = method == "POST" and path.startswith(_MESSAGES)
        if sends and body.get("uuid") in self._keys:
            return _told(self._keys[body["uuid"]])
        passed = dict(body)
        if sends and body["msg_type"] in {"image", "file", "interactive"}:
            passed |= {"msg_type": "text", "content": json.dumps({"text": body["content"]})}
        headers = {name: request.headers[name] for name in ("authorization", "content-type") if name in request.headers}
        url = f"{self.crabline.url}{path}"
        content = json.dumps(passed).encode() if method == "POST" else b""
        answer = await self.client.request(
            method, url, content=content, headers=headers, params=dict(request.query_params)
        )
        text = answer.text.replace(self.crabline.url.removeprefix("http://"), self.host)
        if answer.status_code != 200:
            return Response(text, answer.status_code, media_type="application/json")
        data = json.loads(text)
        if sends:
            data["data"] = self._sent(path, body, data["data"])
            if "uuid" in body:
                self._keys[body["uuid"]] = data["data"]
        elif path.startswith(f"{_MESSAGES}/"):
            known = self.said[path.rpartition("/")[2]]
            data["data"]["items"] = [one | self._shown(known) for one in data["data"]["items"]]
        return Response(json.dumps(data), 200, media_type="application/json")

    def _sent(self, path: str, body: Told, message: Told) -> Told:
        """Remember what the app said, and where."""
        target = self.said.get(path.split("/")[5]) if path.endswith("/reply") else None
        root = ""
        if target is not None:
            root = target.root or (target.id if body.get("reply_in_thread") else "")
        said = self.said[message["message_id"]] = Said(message["message_id"], message["chat_id"], root, APP)
        said.kind, said.content = body["msg_type"], json.loads(body["content"])
        said.parent = target.id if target is not None else ""
        if said.kind == "interactive":
            said.card = said.content["data"]["card_id"]
        return message | self._shown(said)

    async def _itself(self, method: str, path: str, body: Told, query: dict[str, str]) -> Response | None:
        """Do what crabline can't."""
        parts = path.split("/")[4:] or [""]
        if path.startswith(_CARDS):
            return self._card(method, parts[1:], body)
        if method == "POST" and parts[0] == "messages":
            return self._sending(parts[1:], body)
        if parts[0] == "messages":
            return self._message(method, parts[1:], body, query)
        found: Told
        match method, parts:
            case "POST", [("images" | "files") as kind]:
                name = kind[:-1]
                key = f"{name}_{next(self._numbers)}"
                self.resources[key] = base64.b64decode(body[name])
                found = {f"{name}_key": key}
            case "GET", ["users", user] if user in PEOPLE.values():
                found = {"user": {"name": next(name for name, id in PEOPLE.items() if id == user)}}
            case "GET", ["chats"]:
                groups = {one.chat for one in self.said.values()} - set(self.p2p)
                found = {"items": [{"chat_id": chat} for chat in sorted(groups)], "has_more": False}
            case "GET", ["chats", chat]:
                mode = "p2p" if chat in self.p2p else "topic" if chat in self.topics else "group"
                found = {"name": f"name of {chat}", "chat_mode": mode}
            case "GET", ["scopes"]:
                found = {"scopes": [{"scope_name": name, "grant_status": 1} for name in sorted(self.scopes)]}
            case _:
                return None
        return _told(found)

    def _sending(self, parts: list[str], body: Told) -> Response | None:
        """Refuse what Feishu would."""
        if body.get("receive_id") == NOWHERE:
            return refusal(230002, "Bot can NOT be out of the chat.")
        if len(body["content"].encode()) > _LARGEST:
            return refusal(230025, "The length of the message content reaches its limit.")
        if parts and parts[0] in self.said and self.said[parts[0]].gone:
            return refusal(230011, "The message was withdrawn.")
        return self._shown_once(body) if body["msg_type"] == "interactive" else None

    def _message(self, method: str, parts: list[str], body: Told, query: dict[str, str]) -> Response | None:
        match method, parts:
            case "GET", []:
                return self._listed(query)
            case "GET", [_, "resources", key]:
                return Response(self.resources[key]) if key in self.resources else refusal(234003, "no such file")
            case "PUT", [id]:
                return self._edited(id, body)
            case "DELETE", [id]:
                self.said[id].gone = True
                return _told({})
            case _:
                return None

    def _card(self, method: str, parts: list[str], body: Told) -> Response | None:
        if method == "PUT":
            return self._changed(parts[0], parts[1:], body)
        if parts == ["id_convert"]:
            known = self.said.get(body["message_id"])
            return _told({"card_id": known.card}) if known and known.card else refusal(10002, "no card")
        id = str(next(self._numbers))
        self.cards[id] = {"card": json.loads(body["data"]), "sequence": 0, "shown": 0}
        return _told({"card_id": id})

    def _changed(self, id: str, parts: list[str], body: Told) -> Response:
        if id not in self.cards:
            return refusal(200740, "The card entity does not exist")
        card = self.cards[id]
        if body["sequence"] <= card["sequence"]:
            return refusal(300317, "The sequence number did not increment")
        if parts and not card["card"]["config"]["streaming_mode"]:
            return refusal(300309, "streaming mode is closed")
        card["sequence"] = body["sequence"]
        if parts:
            card["card"]["body"]["elements"][0]["content"] = body["content"]
        else:
            card["card"] = json.loads(body["card"]["data"])
        return _told({})

    def _shown_once(self, body: Told) -> Response | None:
        """Refuse to show a card that isn't there, or a second time."""
        card = self.cards.get(json.loads(body["content"]).get("data", {}).get("card_id"))
        if body.get("uuid") in self._keys:
            return None
        if card is None or card["shown"]:
            return refusal(230099, "Failed to create card content")
        card["shown"] += 1
        return None

    def _edited(self, id: str, body: Told) -> Response:
        said = self.said[id]
        if said.gone:
            return refusal(230011, "The message was withdrawn.")
        if said.card:
            return refusal(230054, "This operation is not supported for this message type.")
        if said.edits >= _MOST_EDITS:
            return refusal(230072, "The message has reached the number of times it can be edited.")
        said.edits += 1
        said.content = json.loads(body["content"])
        return _told({})

    def _listed(self, query: dict[str, str]) -> Response:
        wanted, in_thread = query["container_id"], query["container_id_type"] == "thread"
        if not in_thread and wanted not in self.p2p and not self.shows_groups:
            return refusal(230027, "Lack of necessary permissions.")
        found = [
            one for one in self.said.values()
            if ((_thread_id(one.root) == wanted) if in_thread else (one.chat == wanted and not one.root))
            and one.at >= float(query.get("start_time", 0))
        ]  # fmt: skip
        first, size = int(query.get("page_token", 0)), int(query["page_size"])
        newest, rest = sorted(found, key=lambda one: one.at, reverse=True)[first : first + size], first + size
        items = [self._shown(one) | self._begun(one) for one in newest]
        return _told({"items": items, "has_more": len(found) > rest, "page_token": str(rest)})

    def _begun(self, said: Said) -> Told:
        """The thread that a message is the root of."""
        is_root = said.chat in self.topics or any(one.root == said.id for one in self.said.values())
        return {"thread_id": _thread_id(said.id)} if is_root and not said.root else {}

    def _shown(self, said: Said) -> Told:
        """A message as Feishu tells it: rich texts come back without their locale, and cards as what is in them."""
        content = said.content
        if said.kind == "post" and "zh_cn" in content:
            content = {"title": "", **content["zh_cn"]}
        if said.card:
            content = {"elements": [[{"tag": "text", "text": self._text(said)}]]}
        about: Told = {"message_id": said.id, "chat_id": said.chat, "msg_type": said.kind, "deleted": said.gone}
        about |= {"body": {"content": json.dumps(content)}, "create_time": str(int(said.at * 1000))}
        kind = ("app", "app_id") if said.by == APP else ("user", "open_id")
        about["sender"] = {"id": said.by, "id_type": kind[1], "sender_type": kind[0]}
        if said.parent:
            about["parent_id"] = said.parent
        if said.changed:
            about |= {"updated": True, "update_time": str(int(said.changed * 1000))}
        return about | ({"root_id": said.root, "thread_id": _thread_id(said.root)} if said.root else {})

    def _text(self, said: Said) -> str:
        if said.card:
            return str(self.cards[said.card]["card"]["body"]["elements"][0]["content"])
        if said.kind == "post":
            return "\n".join(part["text"] for line in said.content["zh_cn"]["content"] for part in line)
        return str(next(iter(said.content.values())))

    def read(self, at: Address) -> list[Seen]:
        """What the app has said somewhere, as it stands now; nobody sees what has no width."""
        here = [one for one in self.said.values() if (one.chat, one.root, one.by) == (at.chat, at.thread, APP)]
        return [Seen(one.id, self._text(one).replace("\u200b", "")) for one in here if not one.gone]

    def card_of(self, message: str) -> Told:
        """The card that a message shows."""
        return dict(self.cards[self.said[message].card]["card"])

    # The long connection.

    async def _socket(self, socket: WebSocket) -> None:
        """A connection of the app's; what it didn't acknowledge comes again on the next one."""
        await socket.accept()
        if self.down:
            await socket.close(1012)
            return
        own: set[str] = set()
        url = f"{self.crabline.url.replace('http', 'ws')}{socket.url.path}?{socket.url.query}"
        try:
            async with connect(url, close_timeout=0.1) as there:
                self._sockets[socket] = (there, own)
                self.changes.tell()
                lost = [frame for frames in self.pending.values() for frame in frames]
                for frame in lost:
                    await socket.send_bytes(frame)
                pump = asyncio.create_task(self._pump(there, socket, own))
                try:
                    while True:
                        await self._heard(await socket.receive_bytes(), there, own)
                finally:
                    pump.cancel()
                    await asyncio.wait([pump])
        except (WebSocketDisconnect, RuntimeError, ConnectionClosed, OSError):
            """The app hung up, or was cut off."""
        finally:
            self._sockets.pop(socket, None)

    async def _heard(self, raw: bytes, there: ClientConnection, own: set[str]) -> None:
        """The app pings or acknowledges: crabline judges what is about its own frames."""
        frame = decode(raw)
        event = frame.headers.get("message_id", "")
        if frame.method == DATA:
            self.pending.pop(event, None)
            self.changes.tell()
        if frame.method != DATA or event in own:
            await there.send(raw)

    async def _pump(self, there: ClientConnection, socket: WebSocket, own: set[str]) -> None:
        with contextlib.suppress(ConnectionClosed, RuntimeError, WebSocketDisconnect):
            async for raw in there:
                assert isinstance(raw, bytes)
                frame, passed = decode(raw), raw
                if frame.method == DATA:
                    event = frame.headers["message_id"]
                    own.add(event)
                    if frame.headers["sum"] == "1":
                        payload = self._doctor(event, json.loads(frame.payload))
                        self.told.append(payload)
                        if event in self._doctored:
                            passed = encode(replace(frame, payload=json.dumps(payload).encode()))
                    self.pending.setdefault(event, []).append(passed)
                await socket.send_bytes(passed)
            await socket.close(1011)

    def _doctor(self, event: str, payload: Told) -> Any:
        doctor = self._doctored.get(event)
        return doctor(payload) if doctor else payload

    async def deliver(self, payload: Any) -> None:
        """Something that crabline has never heard of, or has told already."""
        if self.webhook:
            self._queue.put_nowait(payload)
            return
        event = f"again-{next(self._numbers)}"
        headers = {"type": "event", "message_id": event, "sum": "1", "seq": "0"}
        raw = encode(Frame(DATA, headers, json.dumps(payload).encode(), ((1, 1), (2, 1), (3, 1))))
        self.pending[event] = [raw]
        for socket in self._sockets:
            await socket.send_bytes(raw)

    # The webhook.

    def calls_webhooks(self) -> None:
        """Listen to crabline, and call the app."""
        self._tasks.append(asyncio.create_task(self._follow()))

    async def _follow(self) -> None:
        known = {"AppID": APP, "AppSecret": SECRET}
        answer = await self.client.post(f"{self.crabline.url}/callback/ws/endpoint", json=known)
        async with connect(answer.json()["data"]["URL"], close_timeout=0.1) as there:
            async for raw in there:
                assert isinstance(raw, bytes)
                frame = decode(raw)
                if frame.method == DATA:
                    await there.send(encode(replace(frame, payload=b'{"code":200}')))
                    payload = self._doctor(frame.headers["message_id"], json.loads(frame.payload))
                    payload["header"]["token"] = TOKEN
                    self._queue.put_nowait(payload)

    async def _call(self) -> None:
        """Call the app with one thing after the other, until it takes it."""
        while True:
            payload = await self._queue.get()
            self.told.append(payload)
            while not await self._took(payload):  # noqa: ASYNC110 -- it is tried again
                await asyncio.sleep(0.02)

    async def _took(self, payload: Any) -> bool:
        body = sealed(payload)
        with contextlib.suppress(httpx2.TransportError):
            if not self.down and self.webhook:
                answer = await self.client.post(self.webhook, content=body, headers=signed(body))
                return answer.status_code == 200
        return False

    # People.

    async def says(
        self, chat: str, text: str, who: str = "Ann", thread: str = "", doctor: Doctor | None = None, **about: Any
    ) -> str:
        """A person writes; returns the message's id."""
        message, event = f"om_{uuid4().hex}", uuid4().hex
        root = thread and (self.said[thread].root or thread)
        said = self.said[message] = Said(message, chat, root, PEOPLE[who])
        said.kind, said.content = "text", {"text": text}

        def doctored(payload: Told) -> Any:
            told = payload["event"]["message"]
            if root:
                told |= {"root_id": root, "parent_id": root, "thread_id": _thread_id(root)}
            changed = doctor(payload) if doctor else payload
            told = payload["event"]["message"]
            said.kind, said.content = told["message_type"], json.loads(told["content"])
            return changed

        if root or doctor:
            self._doctored[event] = doctored
        kind = "p2p" if chat in self.p2p else "group"
        body = {"messageId": message, "eventId": event, "chatId": chat, "senderId": PEOPLE[who], "text": text}
        headers = {"Authorization": f"Bearer {ADMIN}"}
        url = f"{self.crabline.url}/crabline/feishu/inbound"
        answer = await self.client.post(url, json={**body, "chatType": kind, **about}, headers=headers)
        assert answer.status_code == 200, answer.text
        return message

    def unheard(self, chat: str, text: str, who: str = "Ann", thread: str = "") -> Said:
        """A person writes, and Feishu has given up telling it."""
        said = Said(f"om_{uuid4().hex}", chat, thread, PEOPLE[who])
        said.kind, said.content = "text", {"text": text}
        self.said[said.id] = said
        return said

    def private(self, who: str) -> str:
        """The private chat of a person with the app."""
        chat = f"oc_private_{who.lower()}"
        self.p2p[chat] = PEOPLE[who]
        return chat

    async def attach(self, chat: str, name: str, content: bytes, who: str, thread: str = "") -> str:
        """A person sends a file."""
        key = f"file_{next(self._numbers)}"
        self.resources[key] = content

        def attached(payload: Told) -> Told:
            about = {"message_type": "file", "content": json.dumps({"file_key": key, "file_name": name})}
            payload["event"]["message"] |= about
            return payload

        return await self.says(chat, "a file", who, thread, attached)

    async def recalls(self, message: str, kind: str = "message_owner") -> None:
        """A person takes a message back."""
        said = self.said[message]
        said.gone = True
        await self.tell("im.message.recalled_v1", {"message_id": message, "chat_id": said.chat, "recall_type": kind})

    async def changes_to(self, message: str, text: str) -> None:
        """A person edits a message; Feishu keeps what was edited as HTML, and its event only names it."""
        said = self.said[message]
        said.content, said.changed = {"text": f"<p>{html.escape(text)}</p>"}, time.time()
        await self.tell("im.message.updated_v1", {"message": {"message_id": message}})

    async def presses(self, message: str, n: int, who: str = "Ann") -> None:
        """A person presses a button of a card."""
        buttons = [one for one in self.card_of(message)["body"]["elements"] if one["tag"] == "button"]
        value = buttons[n]["behaviors"][0]["value"]
        where = {"open_message_id": message, "open_chat_id": self.said[message].chat}
        action = {"tag": "button", "value": value}
        await self.tell(
            "card.action.trigger", {"operator": {"open_id": PEOPLE[who]}, "action": action, "context": where}
        )

    async def tell(self, kind: str, event: Told) -> None:
        """Something happens that crabline knows nothing of."""
        header = {
            "event_id": uuid4().hex,
            "event_type": kind,
            "token": TOKEN,
            "create_time": str(int(time.time() * 1000)),
        }
        await self.deliver({"schema": "2.0", "header": header, "event": event})


def sealed(payload: Any, key: str = KEY, iv: bytes = b"") -> bytes:
    """A body as Feishu encrypts it."""
    iv, padding = iv or os.urandom(16), PKCS7(128).padder()
    padded = padding.update(json.dumps(payload).encode()) + padding.finalize()
    writing = Cipher(AES(hashlib.sha256(key.encode()).digest()), CBC(iv)).encryptor()
    return json.dumps({"encrypt": base64.b64encode(iv + writing.update(padded) + writing.finalize()).decode()}).encode()


def signed(body: bytes, key: str = KEY, at: float | None = None, nonce: str = "") -> dict[str, str]:
    """The headers by which Feishu proves a body."""
    stamp, nonce = str(int(time.time() if at is None else at)), nonce or os.urandom(8).hex()
    proof = hashlib.sha256(f"{stamp}{nonce}{key}".encode() + body).hexdigest()
    return {"X-Lark-Request-Timestamp": stamp, "X-Lark-Request-Nonce": nonce, "X-Lark-Signature": proof}


def _thread_id(root: str) -> str:
    return f"omt_{root.removeprefix('om_')}" if root else ""


def _told(data: Told) -> Response:
    return Response(json.dumps({"code": 0, "msg": "success", "data": data}), 200, media_type="application/json")


def refusal(code: int, why: str, status: int = 400) -> Response:
    """How Feishu refuses."""
    return Response(json.dumps({"code": code, "msg": why}), status, media_type="application/json")


def _form(kind: str, raw: bytes) -> dict[str, str]:
    """The fields of a form; a file, in base64."""
    form, found = email.message_from_bytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + raw), {}
    for part in form.walk():
        name = part.get_param("name", header="content-disposition")
        if isinstance(name, str):
            content = part.get_payload(decode=True)
            assert isinstance(content, bytes)
            found[name] = base64.b64encode(content).decode() if part.get_filename() else content.decode()
    return found


@asynccontextmanager
async def feishu(folder: Path, *, calls: bool = False) -> AsyncIterator[tuple[Between, str]]:
    """Feishu as an app sees it: what stands between, and the address of its API."""
    about = {"adminToken": ADMIN, "appId": APP, "appSecret": SECRET, "botOpenId": BOT, "maxMessages": 100_000}
    server, listener = Crabline("feishu", folder, **about), Listener("127.0.0.1", 0)
    await server.start()
    between = Between(server, listener.url.removeprefix("http://"))
    try:
        if calls:
            between.calls_webhooks()
        async with serving(Mounted(between), listener, 0.1):
            yield between, listener.url
            await between.cut()
    finally:
        await between.close()
        await server.stop()
