"""A town of people who talk to a gateway over HTTP, keep every receipt, and afterwards compare notes.

Black box: all that is known of the gateway is what it answers and what it sends to the callback.
"""

import asyncio
import contextlib
import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import httpx2
from msgspec.structs import replace
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from segue.core.lanes import Identity
from segue.core.messages import PLACEHOLDER, Sending
from segue.core.values import Value
from segue.runtime.inbox import WAIT
from segue.runtime.server.app import Mounted
from segue.runtime.server.listeners import Listener, serving
from segue.store import open_store
from tests.adapters.platform import signed
from tests.clients import http_client
from tests.drills.gateways import ACCOUNT, SECRET
from tests.ports import free_port


class Report(Value, frozen=True):
    """What the people of the town found when they compared notes."""

    accepted: int
    lost: list[str]
    """Messages that were acknowledged and never answered."""
    doubled: list[str]
    """Messages that were answered by more than one message."""
    disordered: list[str]
    """Answers that came before those of earlier messages."""
    mixed: list[str]
    """Answers with somebody else's words in them."""
    unlike: tuple[str, ...] = ()
    """Transcripts that aren't, word for word, what was said and what came."""

    @property
    def clean(self) -> bool:
        return not (self.lost or self.doubled or self.disordered or self.mixed or self.unlike)


class Fault(Enum):
    """How a platform can misbehave."""

    BUSY = "answers 429 and wants to be left alone for a second"
    BROKEN = "answers 500"
    DROPS = "takes the message and hangs up"


class Town:
    """People who each have a chat, and the platform between them and the gateway."""

    def __init__(self, people: int, seed: int, sending: Sending = Sending.KEYED) -> None:
        self.sending = sending
        self._random = random.Random(seed)
        self.chats = [f"chat-{n}" for n in range(people)]
        self._sent: dict[str, list[str]] = defaultdict(list)
        self._accepted: dict[str, list[str]] = defaultdict(list)
        self._received: dict[str, dict[str, Any]] = {}
        self._news = asyncio.Event()
        self._talking: list[asyncio.Task[None]] = []
        self._finishing = False
        self.faults: list[Fault] = []
        """What the platform does to the next calls instead of what it should."""
        self.slow: dict[str, float] = {}
        """Seconds that the platform takes for each call about a chat."""
        self.called: Counter[tuple[str, str]] = Counter()
        """The calls about each chat, by kind."""
        self.callback = ""
        self.port = 0

    @contextlib.asynccontextmanager
    async def platform(self) -> AsyncIterator[None]:
        """Serve the callback: the same key gives the same answer."""
        listener = Listener("127.0.0.1", 0)
        self.callback = f"{listener.url}/out"
        self.port = free_port()
        async with serving(Mounted(self._take), listener):
            yield

    async def _take(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            call = json.loads(await Request(scope, receive).body())
        except ClientDisconnect:
            return  # killed while it was calling
        chat = call["address"]["chat"]
        self.called[chat, call["kind"]] += 1
        await asyncio.sleep(self.slow.get(chat, 0.0))
        match self.faults.pop(0) if self.faults and call["kind"] == "message" else None:
            case None:
                thread = f"thread of {call['key']}"
                await JSONResponse({"id": self._post_up(call), "thread": thread})(scope, receive, send)
            case Fault.BUSY:
                await JSONResponse({}, 429, {"Retry-After": "1"})(scope, receive, send)
            case Fault.BROKEN:
                await JSONResponse({}, 500)(scope, receive, send)
            case Fault.DROPS:
                self._post_up(call)
                raise ConnectionResetError("took the message and hung up")

    def _post_up(self, call: dict[str, Any]) -> str:
        """Do what a platform does with a call; by its class, it knows messages by their keys or doesn't."""
        if call["kind"] == "edit":
            self._received[call["message"]] |= {"text": call["text"], "answers": call["answers"]}
        id: str = call["key"] if self.sending is Sending.KEYED else f"post-{len(self._received)}"
        if call["kind"] == "message" and id not in self._received:
            self._received[id] = call
        self._news.set()
        return id

    @property
    def accepted(self) -> list[str]:
        """Every message that was acknowledged."""
        return [message for messages in self._accepted.values() for message in messages]

    @property
    def posts(self) -> list[dict[str, Any]]:
        """What people see, but for placeholders that a crash left behind and the word that an answer takes a while."""
        return [call for call in self._received.values() if call["text"] not in {PLACEHOLDER, WAIT}]

    def client(self) -> httpx2.AsyncClient:
        """A connection of one's own to the gateway."""
        return http_client(timeout=5.0, limits=httpx2.Limits(max_connections=1))

    async def say(self, chat: str, message: str, **more: object) -> None:
        """One person says one thing, until it is acknowledged."""
        async with http_client(timeout=5.0) as client:
            await self.post(client, chat, message, **more)

    async def call(self, chat: str, message: str, port: int = 0, **more: object) -> httpx2.Response:
        """One call, whatever comes of it."""
        body = self._body(chat, message, **more)
        url = f"http://127.0.0.1:{port or self.port}/in/http/{ACCOUNT}"
        async with http_client(timeout=30.0) as client:
            return await client.post(url, content=body, headers=signed(SECRET, body, time.time()))

    async def health(self, status: int) -> str:
        """Wait until the gateway says that it is so, and return what it says."""
        async with asyncio.timeout(90), http_client(timeout=5.0) as client:
            while True:
                answer = await client.get(f"http://127.0.0.1:{self.port}/healthz")
                if answer.status_code == status:
                    return answer.text
                await asyncio.sleep(0.01)

    def shown(self, chat: str) -> list[str]:
        """Every message that stands in a chat, placeholders too."""
        return [call["text"] for call in self._received.values() if call["address"]["chat"] == chat]

    def texts(self, chat: str) -> list[str]:
        """What the agent said in a chat, in order."""
        return [call["text"] for call in self.posts if call["address"]["chat"] == chat]

    def calls(self, chat: str) -> list[dict[str, Any]]:
        """What the gateway sent to a chat, in order."""
        return [call for call in self.posts if call["address"]["chat"] == chat]

    async def answer(self, message: str) -> str:
        """Wait until a message is answered, and return the answer."""
        while True:
            self._news.clear()
            for call in self.posts:
                if message in call["answers"]:
                    return str(call["text"])
            async with asyncio.timeout(90):
                await self._news.wait()

    async def gets(self, chat: str, count: int) -> None:
        """Wait until so many messages came to a chat."""
        while len(self.texts(chat)) < count:
            self._news.clear()
            async with asyncio.timeout(90):
                await self._news.wait()

    async def hears(self, chat: str, words: str) -> str:
        """Wait until the agent says something in a chat, and return it."""
        while True:
            self._news.clear()
            for text in self.texts(chat):
                if words in text:
                    return text
            async with asyncio.timeout(90):
                await self._news.wait()

    def start_talking(self) -> None:
        """Everybody begins to talk, each in their own chat."""
        self._talking = [asyncio.create_task(self._talk(chat)) for chat in self.chats]

    async def stop_talking(self) -> None:
        """Everybody falls silent, in the middle of a message too: nobody knows whether that was accepted."""
        for task in self._talking:
            task.cancel()
        await asyncio.gather(*self._talking, return_exceptions=True)

    async def finish_talking(self) -> None:
        """Everybody finishes the message that they are sending to a gateway that runs."""
        self._finishing = True
        async with asyncio.timeout(90):
            await asyncio.gather(*self._talking)

    async def _talk(self, chat: str) -> None:
        async with self.client() as client:
            n = 0
            while not self._finishing:
                message = f"{chat}-message-{n}"
                n += 1
                await self.post(client, chat, message)
                if self._random.random() < 0.2:
                    await self.post(client, chat, self._random.choice(self._accepted[chat]))
                await asyncio.sleep(self._random.uniform(0.0, 0.2))

    def _body(self, chat: str, message: str, **more: object) -> bytes:
        person = {"id": f"person of {chat}", "name": chat}
        plain = {"id": message, "chat": chat, "chat_kind": "dm", "person": person, "text": f"I am {message}"}
        return json.dumps(plain | more).encode()

    async def post(self, client: httpx2.AsyncClient, chat: str, message: str, **more: object) -> None:
        """Send a message until it is acknowledged, as platforms do."""
        body = self._body(chat, message, **more)
        if message not in self._sent[chat]:
            self._sent[chat].append(message)
        url = f"http://127.0.0.1:{self.port}/in/http/{ACCOUNT}"
        while True:
            with contextlib.suppress(httpx2.TransportError):
                answer = await client.post(url, content=body, headers=signed(SECRET, body, time.time()))
                if answer.status_code in {200, 202}:
                    if message not in self._accepted[chat]:
                        self._accepted[chat].append(message)
                    return
            await asyncio.sleep(0.02)

    async def ready(self, port: int = 0) -> None:
        """Wait until the gateway, or the one at a port, takes messages in."""
        async with http_client(timeout=5.0) as client:
            while True:
                with contextlib.suppress(httpx2.TransportError):
                    answer = await client.get(f"http://127.0.0.1:{port or self.port}/readyz")
                    if answer.status_code == 200:
                        return
                await asyncio.sleep(0.01)

    async def settle(self, seconds: float) -> None:
        """Wait until everything that was acknowledged is answered, or nothing new has come for so long."""
        while self._unanswered():
            self._news.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._news.wait()
            except TimeoutError:
                return

    def _answers(self) -> dict[str, list[str]]:
        """By message, the texts that answered it."""
        answers: dict[str, list[str]] = defaultdict(list)
        for call in self.posts:
            for message in call["answers"]:
                answers[message].append(call["text"])
        return answers

    def got(self, key: str) -> bool:
        """Whether a message came."""
        return key in self._received

    def answered(self, message: str) -> bool:
        """Whether anything came in answer to a message."""
        return bool(self._answers().get(message))

    def _unanswered(self) -> list[str]:
        answers = self._answers()
        said = self.accepted
        # An answer says again what it was asked, so one that stops short is none.
        return [message for message in said if not any(f"I am {message}" in text for text in answers.get(message, ()))]

    async def compare_transcripts(self, where: str) -> Report:
        """The same, and whether each transcript is, word for word, what was said and what came."""
        unlike = []
        async with await open_store(where if where.startswith("postgresql://") else Path(where)) as store:
            for chat in self.chats:
                person = await store.person(Identity("http", ACCOUNT, f"person of {chat}"))
                kept = [
                    entry.text
                    for session in await store.sessions(person)
                    for entry in await store.path(session.id)
                    if entry.text
                ]
                said = [
                    words
                    for call in self.calls(chat)
                    if call["answers"]
                    for words in (*(f"I am {message}" for message in call["answers"]), call["text"])
                ]
                unlike += [] if kept == said else [f"{chat}: {_difference(kept, said)}"]
        return replace(self.compare_notes(), unlike=tuple(unlike))

    def compare_notes(self) -> Report:
        """What was lost, doubled, out of order or mixed up."""
        order: dict[str, list[int]] = defaultdict(list)
        mixed = []
        for call in self.posts:
            chat = call["address"]["chat"]
            order[chat] += [int(message.rsplit("-", 1)[1]) for message in call["answers"]]
            if any(f"{other}-" in call["text"] for other in self.chats if other != chat):
                mixed.append(call["text"])
        return Report(
            accepted=sum(map(len, self._accepted.values())),
            lost=self._unanswered(),
            doubled=[f"{message}: {texts}" for message, texts in self._answers().items() if len(texts) > 1],
            disordered=[chat for chat, numbers in order.items() if numbers != sorted(numbers)],
            mixed=mixed,
        )


def _difference(kept: Sequence[str], said: Sequence[str]) -> str:
    """The first place where they part, with a little around it."""
    at = next((n for n, (one, other) in enumerate(zip(kept, said, strict=False)) if one != other), 0)
    at = at or min(len(kept), len(said))
    few = slice(max(at - 1, 0), at + 3)
    return f"at {at} of {len(kept)}: {kept[few]} instead of {said[few]}"
