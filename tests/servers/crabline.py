"""crabline's Telegram on loopback, and what it can't do put in on the way.

`Between` stands between crabline and a bot: it keeps what the bot sent, with the ids that it got, turns a plain message
into a reply, an edit or something garbled, tells updates again, and refuses calls the way Telegram does.
What one person alone sees in a group (Bot API 10.2 and 10.3) crabline doesn't know: `Between` answers those calls as
their documentation says.
"""

from __future__ import annotations

import asyncio
import email
import html
import itertools
import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from segue.core.lanes import Address
from segue.core.messages import PLACEHOLDER
from segue.runtime.server.app import Mounted
from segue.runtime.server.listeners import Listener, serving
from segue.testing.asgi import Application
from segue.testing.harness import Seen
from segue.testing.waits import Changes
from tests.clients import http_client
from tests.servers.providers import Crabline

TOKEN = "424242:crabline-telegram-token"
ADMIN = "admin-of-the-test"
BOT = "segue_test_bot"
_CALLED = "/called"
_TAG = re.compile(r"<[^<>]*>")
Doctor = Callable[[dict[str, Any]], Any]


class Between:
    """Passes calls on to crabline, and people's messages to it."""

    def __init__(self, telegram: Crabline) -> None:
        self.telegram = telegram
        self.calls: list[tuple[str, dict[str, Any]]] = []
        """What the bot called, in order."""
        self.refuse: Callable[[str, dict[str, Any]], Response | None] = lambda _method, _body: None
        """Answers a call instead of crabline."""
        self.taken: Callable[[str, dict[str, Any]], Awaitable[None]] | None = None
        """Is told of a call that crabline took, before the bot hears that it did."""
        self.url = ""
        """Where it is itself; then crabline calls a webhook by way of it, so that what is told can be doctored."""
        self._webhook = ""
        self.files: dict[str, bytes] = {}
        self.attached: dict[tuple[str, str], str] = {}
        """The file that a message became, by its chat and id."""
        self.whispered: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
        """What one person alone sees of a chat, by both, with the ids that Telegram has for that."""
        self.forums: set[str] = set()
        self.changes = Changes()
        self._sent: dict[tuple[str, str], dict[str, str]] = {}
        self._doctored: dict[int, Doctor] = {}
        self.told: list[Any] = []
        self._again: list[Any] = []
        self._chats = itertools.count(1)
        self._updates = itertools.count(1000)
        self._last: dict[str, int] = defaultdict(int)
        """The newest message of each chat: ids go on through a restart of crabline, as Telegram's do."""
        self._open = True
        self._client = http_client(timeout=60)

    def end(self) -> None:
        """Let go of whoever polls."""
        self._open = False
        self.changes.tell()

    async def close(self) -> None:
        await self._client.aclose()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        try:
            called = request.url.path == _CALLED
            answer = await (self._pass_on(request) if called else self._answer(request))
        except ClientDisconnect:
            return  # killed while it was calling
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        method = request.url.path.rpartition("/")[2]
        if request.url.path.startswith("/file/"):
            content = self.files.get(method)
            return Response("no", 404) if content is None else Response(content)
        raw = await request.body()
        kind = request.headers.get("Content-Type", "")
        body = _parts(kind, raw) if "multipart" in kind else _fields(raw)
        self.calls.append((method, body))
        self.changes.tell()
        if instead := self.refuse(method, body) or await self._itself(method, body):
            return instead
        headers = {name: value for name, value in request.headers.items() if name == "content-type"}
        if method == "setWebhook" and self.url:
            self._webhook = body["url"]
            raw = json.dumps({**json.loads(raw), "url": self.url + _CALLED}).encode()
        call = asyncio.create_task(
            self._client.post(self.telegram.url + request.url.path, content=raw, headers=headers)
        )
        if method == "getUpdates" and await self._interrupted(call):
            again, self._again = self._again, []
            return _answered({"ok": True, "result": again})
        try:
            answer = self._seen(method, body, await call)
            if self.taken is not None:
                await self.taken(method, body)
            return answer  # noqa: TRY300 -- only the call may fail
        except httpx2.TransportError:
            return Response("down", 502)

    async def _itself(self, method: str, body: dict[str, str]) -> Response | None:
        """Do what crabline can't."""
        match method:
            case "sendMessage" if "ephemeral_message_parameters" in body:
                return self._whisper(body)
            case "editEphemeralMessageText" | "deleteEphemeralMessage":
                return self._change_whisper(body)
            case "getFile":
                name = body["file_id"]
                known = {"file_id": name, "file_unique_id": name, "file_path": name}
                return _answered({"ok": True, "result": known} if name in self.files else _error(400, "wrong file_id"))
            case "editMessageMedia":
                return await self._put_in(body)
            case "editMessageText" if body.get("text") == PLACEHOLDER:
                return self._refuses(body)
            case _:
                return None

    def _whisper(self, body: dict[str, str]) -> Response:
        """Show one person a message, in answer to one of theirs that nobody else saw."""
        reader = json.loads(body["ephemeral_message_parameters"])["receiver_user_id"]
        if "ephemeral_message_id" not in json.loads(body.get("reply_parameters", "{}")):
            return refusal(400, "Bad Request: MESSAGE_NOT_COMMAND")
        seen = self.whispered[body["chat_id"], str(reader)]
        seen[str(len(seen) + 1)] = _shown(body)
        self.changes.tell()
        receiver = {"id": reader, "is_bot": False, "first_name": "Reader"}
        made = {"message_id": 0, "ephemeral_message_id": len(seen), "receiver_user": receiver, "date": 1}
        return _answered({"ok": True, "result": {**made, "chat": {"id": int(body["chat_id"]), "type": "supergroup"}}})

    def _change_whisper(self, body: dict[str, str]) -> Response:
        seen = self.whispered[body["chat_id"], body["receiver_user_id"]]
        if body["ephemeral_message_id"] not in seen:
            return refusal(400, "Bad Request: message to edit not found")
        seen[body["ephemeral_message_id"]] = _shown(body) if "text" in body else ""
        self.changes.tell()
        return _answered({"ok": True, "result": True})

    def _refuses(self, body: dict[str, str]) -> Response | None:
        """Refuse an edit of what isn't the bot's own message, or says that already."""
        chats = [messages for (chat, _), messages in self._sent.items() if chat == body["chat_id"]]
        said = next((messages[id] for messages in chats if (id := body["message_id"]) in messages), None)
        if said is None:
            return refusal(400, "Bad Request: message can't be edited")
        return refusal(400, "Bad Request: message is not modified") if said == body["text"] else None

    async def _put_in(self, body: dict[str, str]) -> Response:
        """A message becomes a file."""
        media = json.loads(body["media"])
        shown = html.unescape(_TAG.sub("", media["caption"])) if media.get("parse_mode") else media["caption"]
        self.attached[body["chat_id"], body["message_id"]] = body[media["media"].removeprefix("attach://")]
        self._keep(body, body["message_id"], shown)
        if self.taken is not None:
            await self.taken("editMessageMedia", body)
        return _answered({"ok": True, "result": True})

    async def _pass_on(self, request: Request) -> Response:
        """Call the bot's webhook as crabline would."""
        body = self._doctor(await request.json())
        shown = {name: value for name, value in request.headers.items() if name.startswith("x-telegram")}
        try:
            answer = await self._client.post(self._webhook, json=body, headers=shown)
        except httpx2.TransportError:
            return Response("nobody is there", 502)
        return Response(answer.content, answer.status_code)

    async def _interrupted(self, poll: asyncio.Task[Any]) -> bool:
        """Whether there is something to tell that crabline doesn't know, before its own answer is there."""
        while not poll.done() and not self._again and self._open:
            change = asyncio.create_task(self.changes.next())
            await asyncio.wait([poll, change], return_when=asyncio.FIRST_COMPLETED)
            change.cancel()
        if poll.done() and not self._again:
            return False
        poll.cancel()
        await asyncio.wait([poll])
        return True

    def _seen(self, method: str, body: dict[str, str], passed: httpx2.Response) -> Response:
        if passed.status_code == 404:
            return refusal(401, "Unauthorized")
        answer = passed.json()
        if passed.status_code == 200 and method == "getUpdates":
            answer["result"] = [self._doctor(update) for update in answer["result"]]
            self.told += answer["result"]
        if passed.status_code == 200 and method == "getWebhookInfo" and self.url:
            answer["result"]["url"] = self._webhook
        if passed.status_code == 200 and isinstance(made := answer["result"], dict) and "chat_id" in body:
            newest = made.get("message_id") or made["message_thread_id"]
            self._last[body["chat_id"]] = max(self._last[body["chat_id"]], newest)
        if passed.status_code == 200 and method in {"sendMessage", "editMessageText"}:
            self._keep(body, str(answer["result"]["message_id"]), _shown(body))
        return _answered(answer, passed.status_code)

    def _keep(self, body: dict[str, str], id: str, text: str) -> None:
        """A message is where it was sent, and an edit doesn't say where that is."""
        chat = body["chat_id"]
        known = [messages for (where, _), messages in self._sent.items() if where == chat and id in messages]
        for messages in known or [self._sent.setdefault((chat, body.get("message_thread_id", "")), {})]:
            messages[id] = text
        self.changes.tell()

    def _doctor(self, update: dict[str, Any]) -> Any:
        doctor = self._doctored.get(update["update_id"])
        return doctor(update) if doctor else update

    def doctoring(self, app: Application) -> Application:
        """A webhook as crabline calls it, with what it can't do put in on the way."""

        async def called(scope: Any, receive: Any, send: Any) -> None:
            body = self._doctor(await Request(scope, receive).json())
            if body not in self.told:
                self.told.append(body)
            sent = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]

            async def receive_doctored() -> Any:
                return sent.pop() if sent else {"type": "http.disconnect"}

            await app(scope, receive_doctored, send)

        return called

    def read(self, at: Address) -> list[Seen]:
        """All that the bot has said somewhere."""
        return [Seen(id, text) for id, text in self._sent.get((at.chat, at.thread), {}).items()]

    async def shows(self, at: Address, text: str) -> Seen:
        """Wait until the bot has said this."""
        return await self.changes.until(
            lambda: next((seen for seen in self.read(at) if seen.text == text), None),
            lambda: f"{text!r} was never said; there are {self.read(at)!r}",
        )

    async def says(self, chat: str, text: str, who: int = 501, thread: str = "", doctor: Doctor | None = None) -> str:
        """A person writes."""
        update = next(self._updates)
        self._last[chat] += 1
        message = str(self._last[chat])
        if doctor is not None or thread:
            self._doctored[update] = lambda said: (doctor or (lambda same: same))(_in_topic(said, thread))
        body: dict[str, Any] = {"chatId": chat, "text": text, "fromId": who, "fromName": f"Person {who}"}
        body |= {"updateId": update, "messageId": int(message)}
        if thread:
            body["messageThreadId"] = int(thread)
        if chat in self.forums:
            body |= {"chatType": "supergroup", "isForum": True}
        headers = {"Authorization": f"Bearer {ADMIN}"}
        answer = await self._client.post(f"{self.telegram.url}/crabline/telegram/inbound", json=body, headers=headers)
        if answer.status_code == 400 and "monotonic" in answer.text:
            # A message of the bot's took the id meanwhile.
            return await self.says(chat, text, who, thread, doctor)
        assert answer.status_code == 200, answer.text
        return message

    async def forum(self) -> str:
        """A new supergroup with topics, of which the bot knows."""
        chat = f"-100{next(self._chats):08}"
        self.forums.add(chat)
        known = {"id": int(chat), "type": "supergroup", "is_forum": True, "title": "Forum"}
        body = {"update_id": next(self._updates), "message": {"message_id": 0, "date": 1, "chat": known}}
        headers = {"Authorization": f"Bearer {ADMIN}"}
        answer = await self._client.post(f"{self.telegram.url}/crabline/telegram/inbound", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        return chat

    def tell_again(self) -> None:
        """All that was told is told once more."""
        self._again += self.told
        self.changes.tell()

    def tell(self, update: Any) -> None:
        """Something that crabline has never heard of."""
        self._again.append(update)
        self.changes.tell()

    @property
    def next_update(self) -> int:
        return next(self._updates)


def _shown(body: dict[str, str]) -> str:
    """The text of a message as people read it."""
    return html.unescape(_TAG.sub("", body["text"])) if body.get("parse_mode") else body["text"]


def _parts(kind: str, raw: bytes) -> dict[str, str]:
    """The fields of a form; of a file, its name."""
    form = email.message_from_bytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + raw)
    found = {}
    for part in form.walk():
        name = part.get_param("name", header="content-disposition")
        if isinstance(name, str):
            content = part.get_payload(decode=True)
            found[name] = part.get_filename() or (content.decode() if isinstance(content, bytes) else "")
    return found


def _fields(raw: bytes) -> dict[str, str]:
    """The fields of a call in JSON; what is no text, as JSON."""
    told = json.loads(raw)
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in told.items()}


def _in_topic(update: dict[str, Any], thread: str) -> dict[str, Any]:
    """crabline leaves out the flag that says that the thread is a topic."""
    if thread:
        update["message"]["is_topic_message"] = True
    return update


def _answered(answer: Any, status: int = 200) -> Response:
    status = answer.get("error_code", status) if isinstance(answer, dict) else status
    return Response(json.dumps(answer), status, media_type="application/json")


def _error(status: int, description: str, **more: Any) -> dict[str, Any]:
    return {"ok": False, "error_code": status, "description": description, **more}


def refusal(status: int, description: str, **more: Any) -> Response:
    """How Telegram refuses."""
    return _answered(_error(status, description, **more))


@asynccontextmanager
async def telegram(folder: Path) -> AsyncIterator[tuple[Between, str]]:
    """Telegram as a bot sees it: what stands between, and its address."""
    server = Crabline("telegram", folder, adminToken=ADMIN, botToken=TOKEN, botUsername=BOT)
    await server.start()
    between, listener = Between(server), Listener("127.0.0.1", 0)
    try:
        async with serving(Mounted(between), listener, 0.1):
            yield between, listener.url
            between.end()
    finally:
        await between.close()
        await server.stop()
