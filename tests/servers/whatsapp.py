"""crabline's WhatsApp Cloud API on loopback, and what it can't do put in on the way.

crabline takes texts to numbers, tells that they were read, and words what people say as webhooks, but calls nobody.
`Between` calls: signed, in order, and again until it hears 200, as WhatsApp does for days. In the form that WhatsApp's
documentation gives them it makes user ids, replies, files, buttons, edits, deletions and changes of ids out of plain
messages, takes documents, pictures, buttons, lists and groups, and tells what became of each message.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from segue.adapters.whatsapp import bridge
from segue.adapters.whatsapp.adapter import PROOF, signature
from segue.core.lanes import Address
from segue.core.values import Secret
from segue.runtime.server.app import Mounted
from segue.runtime.server.listeners import Listener, serving
from segue.testing.harness import Seen
from segue.testing.waits import Changes
from tests.clients import http_client
from tests.servers import linked_devices, modules, node
from tests.servers.providers import Crabline

NUMBER, TOKEN, APP_SECRET, VERIFY, ADMIN = "100000000000000", "EAAtoken", "the app's secret", "a word", "admin"
VERSION = "v25.0"
Json = dict[str, Any]
Doctor = Callable[[Json], Any]
_PAUSE = 0.05
"""Seconds until a call is made again that wasn't answered with 200: WhatsApp takes longer."""


class Someone(NamedTuple):
    """Somebody on WhatsApp."""

    number: str
    user: str


PEOPLE = {"Ann": Someone("4915100000501", "DE.1349501"), "Ben": Someone("4915100000502", "DE.1349502")}


class Between:
    """Passes calls on to crabline, and what people say to the webhook."""

    def __init__(self, whatsapp: Crabline) -> None:
        self.whatsapp = whatsapp
        self.url = ""
        self.webhook = ""
        """Where the account is called; what is told before there is such a place waits."""
        self.calls: list[tuple[str, Json]] = []
        """What the account called, in order: the last part of the path, and the body."""
        self.refuse: Callable[[str, Json], Response | None] = lambda _what, _body: None
        """Answers a call instead of WhatsApp."""
        self.taken: Callable[[Json], Awaitable[None]] | None = None
        """Is told of a message that was taken, before the account hears that it was."""
        self.status: Callable[[Json], Json | None] = lambda _: {"status": "sent"}
        """What is told of a message that was taken; None for nothing."""
        self.files: dict[str, bytes] = {}
        self.told: list[Json] = []
        """The bodies of the calls that were made."""
        self.down = False
        """Nobody gets through."""
        self.changes = Changes()
        self._sent: dict[str, dict[str, str]] = {}
        self._numbers = itertools.count(1)
        self._queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._telling: asyncio.Task[None] | None = None
        self._client = http_client(timeout=60)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        try:
            answer = Response("down", 502) if self.down else await self._answer(request)
        except ClientDisconnect:
            return  # killed while it was calling
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        what, kind = request.url.path.rpartition("/")[2], request.headers.get("Content-Type", "")
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return refusal(190, "Invalid OAuth access token.", 401)
        if request.method == "GET":
            return await self._got(what, request)
        if "multipart" in kind:
            id = f"media-{next(self._numbers)}"
            async with request.form() as form:
                content = form["file"]
                assert not isinstance(content, str)
                self.files[id] = await content.read()
                self.calls.append((what, {"type": form["type"], "name": content.filename}))
            return JSONResponse({"id": id})
        body = json.loads(await request.body())
        self.calls.append((what, body))
        self.changes.tell()
        return self.refuse(what, body) or await self._message(body, request)

    async def _got(self, what: str, request: Request) -> Response:
        if request.url.path.startswith("/media/"):
            return Response(self.files[what]) if what in self.files else Response("no", 404)
        if what in self.files:
            return JSONResponse({"id": what, "url": f"{self.url}/media/{what}", "file_size": len(self.files[what])})
        return await self._passed("GET", f"{request.url.path}?{request.url.query}", None)

    async def _message(self, body: Json, request: Request) -> Response:
        """Take a message: what crabline doesn't know is taken here, by the same rules."""
        path = request.url.path
        if "status" in body:
            known = {name: value for name, value in body.items() if name != "typing_indicator"}
            return await self._passed("POST", path, known)
        users = {one.user: one.number for one in PEOPLE.values()}
        to = str(body["to"] if "to" in body else users.get(body["recipient"], body["recipient"]))
        kind = body["type"]
        if kind == "text" and body["recipient_type"] == "individual" and to.isdecimal():
            passed = await self._passed("POST", path, {**body, "to": to})
            if passed.status_code != 200:
                return passed
            id, text = json.loads(bytes(passed.body))["messages"][0]["id"], body["text"]["body"]
        else:
            id, text = f"wamid.OWN{next(self._numbers):08}", _shown(body, self.files)
        self._sent.setdefault(to, {})[id] = text
        self.changes.tell()
        if self.taken is not None:
            await self.taken(body)
        if (status := self.status(body)) is not None:
            self.report(id, key=body.get("biz_opaque_callback_data", ""), **status)
        return JSONResponse({"messaging_product": "whatsapp", "contacts": [{"input": to}], "messages": [{"id": id}]})

    async def _passed(self, method: str, path: str, body: Json | None) -> Response:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        try:
            answer = await self._client.request(method, self.whatsapp.url + path, json=body, headers=headers)
        except httpx2.TransportError:
            return Response("down", 502)
        return Response(answer.content, answer.status_code, media_type="application/json")

    def report(self, id: str, key: str = "", **status: Any) -> None:
        """Tell what became of a message."""
        told = {"id": id, "timestamp": "1", **({"biz_opaque_callback_data": key} if key else {}), **status}
        self.tell(change(statuses=[told]))

    def tell(self, body: Any) -> None:
        """Call the account, once all that was told before is answered."""
        self._queue.put_nowait(json.dumps(body).encode())
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        while True:
            body = await self._queue.get()
            self.told.append(json.loads(body))
            while not await self._called(body):  # noqa: ASYNC110 -- WhatsApp calls again after a while, too
                await asyncio.sleep(_PAUSE)
            self.changes.tell()

    async def _called(self, body: bytes) -> bool:
        if not self.webhook or self.down:
            return False
        with contextlib.suppress(httpx2.TransportError):
            headers = {PROOF: signature(Secret(APP_SECRET), body), "Content-Type": "application/json"}
            return (await self._client.post(self.webhook, content=body, headers=headers)).status_code == 200
        return False

    async def says(self, chat: str, text: str, who: str = "Ann", doctor: Doctor = lambda body: body) -> str:
        """A person writes, in private or in a group; `doctor` is given the body of the call that tells it."""
        someone = PEOPLE[who]
        jid = f"{someone.number}@s.whatsapp.net"
        said = {"chatJid": jid, "senderJid": jid, "text": text, "pushName": who}
        headers = {"Authorization": f"Bearer {ADMIN}"}
        url = f"{self.whatsapp.url}/_crabline/admin/whatsapp/inbound"
        answer = await self._client.post(url, json=said, headers=headers)
        assert answer.status_code == 200, answer.text
        body = answer.json()["webhook"]
        [message] = message_in(body)
        if chat not in {someone.number, someone.user}:
            message["group_id"] = chat
        self.tell(doctor(body))
        return str(message["id"])

    def read(self, at: Address) -> list[Seen]:
        """All that the account has said somewhere."""
        return [Seen(id, text) for id, text in self._sent.get(at.chat, {}).items()]

    async def close(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.wait([self._telling])
        await self._client.aclose()


def change(**value: Any) -> Json:
    """The body of a call about the number."""
    about = {"messaging_product": "whatsapp", "metadata": {"phone_number_id": NUMBER, "display_phone_number": "1555"}}
    changes = [{"field": "messages", "value": {**about, **value}}]
    return {"object": "whatsapp_business_account", "entry": [{"id": "WABA", "changes": changes}]}


def message_in(body: Json) -> list[Json]:
    """The messages of a call."""
    return list(body["entry"][0]["changes"][0]["value"].get("messages", []))


def known_by(*ids: str) -> Doctor:
    """Makes whoever wrote known by a number, a user id or both."""

    def doctored(body: Json) -> Json:
        value = body["entry"][0]["changes"][0]["value"]
        [contact], [message] = value["contacts"], value["messages"]
        for one, number, user in ((contact, "wa_id", "user_id"), (message, "from", "from_user_id")):
            one.pop(number)
            one.update({user if "." in id else number: id for id in ids})
        return body

    return doctored


def with_(**fields: Any) -> Doctor:
    """Makes another message of it."""

    def doctored(body: Json) -> Json:
        [message] = message_in(body)
        if "type" in fields:
            message.pop("text", None)
        message.update(fields)
        return body

    return doctored


def _shown(body: Json, files: dict[str, bytes]) -> str:
    """What a person sees of a message; a document that is a text is read."""
    kind = body["type"]
    match kind:
        case "interactive":
            return str(body["interactive"]["body"]["text"])
        case "document" if body[kind]["filename"].endswith(".txt"):
            return files[body[kind]["id"]].decode()
        case "text":
            return str(body["text"]["body"])
        case _:
            return str(body[kind].get("caption", kind))


def refusal(code: int, message: str, status: int = 400) -> Response:
    """How WhatsApp refuses."""
    return JSONResponse({"error": {"code": code, "message": message, "type": "OAuthException"}}, status)


@asynccontextmanager
async def whatsapp(folder: Path) -> AsyncIterator[tuple[Between, str]]:
    """WhatsApp as an account sees it: what stands between, and the address of its API."""
    server = Crabline("whatsapp", folder, accessToken=TOKEN, adminToken=ADMIN, phoneNumberId=NUMBER)
    await server.start()
    between, listener = Between(server), Listener("127.0.0.1", 0)
    try:
        async with serving(Mounted(between), listener, 0.1):
            between.url = listener.url
            yield between, f"{listener.url}/{VERSION}"
    finally:
        await between.close()
        await server.stop()


class Phones:
    """crabline's WhatsApp as linked devices see it: a real Baileys connects there.

    crabline pairs nobody: a device here is linked already, or `pairing` stands in front. It takes texts to people only,
    and tells no message again of which nobody said that it was received.
    """

    def __init__(self, server: Crabline, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._client = http_client(timeout=60)
        self.url = f"{server.url.replace('http', 'ws', 1)}/ws/chat?access_token={TOKEN}"

    def link(self, device: Path) -> None:
        """Make the keys of a device that is linked to the account."""
        made = "const {initAuthCreds, BufferJSON} = await import(process.argv[1]); const creds = initAuthCreds();"
        made += 'creds.me = {id: "15550000000:1@s.whatsapp.net", name: "Segue"};'
        made += "process.stdout.write(JSON.stringify(creds, BufferJSON.replacer));"
        library = (bridge.modules() / "baileys" / "lib" / "index.js").as_uri()
        program: list[str | Path] = [node(), "--input-type=module", "-e", made, library]
        device.mkdir(mode=0o700, parents=True)
        (device / "creds.json").write_bytes(subprocess.run(program, check=True, capture_output=True).stdout)

    async def says(self, text: str, who: str = "Ann") -> str:
        """A person writes."""
        jid = jid_of(who)
        headers = {"Authorization": f"Bearer {ADMIN}"}
        url = f"{self._server.url}/_crabline/admin/whatsapp/inbound"
        said = {"chatJid": jid, "senderJid": jid, "text": text, "pushName": who}
        answer = await self._client.post(url, json=said, headers=headers)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["message"]["key"]["id"])

    @property
    def record(self) -> list[Json]:
        """All that happened, as crabline wrote it down."""
        files = sorted(self._folder.glob("crabline-whatsapp-*/calls.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines() if line.endswith("}")]

    @property
    def texts(self) -> list[tuple[str, str]]:
        """What the account has said: each message's id, and its text."""
        sent = [one["body"] for one in self.record if one.get("accepted") and one["method"] == "WEBSOCKET"]
        return [(body["key"]["id"], body["message"]["conversation"]) for body in sent if "key" in body]

    @property
    def received(self) -> list[str]:
        """The messages that the device said it has received."""
        told = [one["body"] for one in self.record if one["method"] == "WEBSOCKET"]
        return [body["attrs"]["id"] for body in told if body.get("tag") == "receipt"]

    async def until(self, so: Callable[[], bool]) -> None:
        """Wait until something is in the record, which tells nobody when it grows."""
        async with asyncio.timeout(60):
            while not so():  # noqa: ASYNC110 -- a file
                await asyncio.sleep(0.05)

    async def close(self) -> None:
        await self._client.aclose()


def jid_of(who: str) -> str:
    """The id by which a device knows somebody."""
    return f"{PEOPLE[who].number}@s.whatsapp.net"


@asynccontextmanager
async def phones(folder: Path) -> AsyncIterator[Phones]:
    """WhatsApp as a linked device sees it."""
    linked_devices()
    server = Crabline("whatsapp", folder, accessToken=TOKEN, adminToken=ADMIN, phoneNumberId=NUMBER)
    await server.start()
    there = Phones(server, folder)
    try:
        yield there
    finally:
        await there.close()
        await server.stop()


class Pairing:
    """WhatsApp as a device sees it that nobody has linked yet: it shows codes, and a phone scans one."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.url = ""

    async def told(self) -> Json:
        """The next thing that it says."""
        assert self._process.stdout is not None
        async with asyncio.timeout(60):
            return dict(json.loads(await self._process.stdout.readline()))

    async def scan(self, code: str) -> Json:
        """A phone scans a code; returns what becomes of it."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{code}\n".encode())
        return await self.told()


@asynccontextmanager
async def pairing(there: Phones) -> AsyncIterator[Pairing]:
    """WhatsApp for a device that is to be linked; once it is, it is among `there`."""
    program, pipe = Path(__file__).with_name("pairing.mjs"), asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        node(), program, modules(), bridge.modules(), there.url, stdin=pipe, stdout=pipe, start_new_session=True
    )
    made = Pairing(process)
    try:
        made.url = (await made.told())["url"]
        yield made
    finally:
        process.kill()
        await process.wait()
