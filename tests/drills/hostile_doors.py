"""The doors that hostile input knocks at: commands, tools, webhooks, syncs and windows, each by what reads it.

All commands, tools, fields and frames are found by reflection: a new one is knocked at as soon as it is there.
"""

import asyncio
import itertools
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

from segue.adapters.http import Http
from segue.adapters.http.incoming import Sent
from segue.adapters.matrix.adapter import Matrix
from segue.adapters.matrix.events import Content, Event
from segue.adapters.matrix.homeserver import _TYPES, PRIVATE_CHATS, Homeserver, Json
from segue.adapters.shared.connections import Returned
from segue.adapters.shared.rates import Bucket
from segue.adapters.shared.web import Web
from segue.adapters.telegram.adapter import HEADER, TelegramByWebhook, secret_of
from segue.adapters.telegram.api import Api
from segue.adapters.telegram.incoming import _FOREIGN
from segue.adapters.telegram.updates import Peer, Update
from segue.core.commands import SPECS
from segue.core.contracts.adapters import Accept, Accepted, Arrived, Intake, Letter
from segue.core.contracts.agents import Event as AgentEvent
from segue.core.contracts.agents import Work
from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import Arrival, Delivery, Speaker, Text, ToolCall, plain_text
from segue.core.values import Secret
from segue.errors import Disconnected, SendNever
from segue.runtime.files.folder import Folder
from segue.runtime.gateway import Gateway
from segue.runtime.intake import OwnLocker
from segue.runtime.windows.frames import Asked
from segue.runtime.windows.local import Local
from segue.runtime.windows.routes import Windows
from segue.runtime.windows.sign_in import SignIn
from segue.testing import Shelf
from segue.testing.asgi import post
from segue.testing.harness import Bookmark, Given
from segue.testing.waits import Changes
from tests.adapters.platform import signed
from tests.drills.hostile_feishu import Bird, FeishuDoor
from tests.drills.hostile_names import hostile
from tests.drills.hostile_platforms import App, DiscordDoor, Guest, Line, Phone, SignalDoor, SlackDoor, WhatsAppDoor
from tests.drills.pace import slow
from tests.drills.payloads import Named, Payloads, mean

SECRET = "the secret of the door"
HOST = Identity("whatsapp", "main", "host")
BOT, ROOM = "@bot:example.org", "!room:example.org"
THROUGH = 2
"""Of so many arrivals at an adapter's door one goes on to the gateway."""

Case = tuple[str, str]
"""A case by its name, and what is wrong with it, empty if nothing is."""
_CHATS: Named = {
    "chat": lambda dice: {"id": dice.choice((5, -100, -7)), "type": dice.choice(("private", "group", "supergroup"))},
    "from": lambda dice: {"id": dice.randrange(9), "first_name": hostile(dice, 4)},
    "text": lambda dice: str(mean(dice)),
    "type": lambda dice: dice.choice(("mention", "bot_command", "text_mention", "bold")),
    "status": lambda dice: dice.choice(("member", "left", "kicked")),
}
_ROOMS: Named = {
    "type": lambda dice: dice.choice(_TYPES) if dice.random() < 0.2 else "m.room.message",
    "sender": lambda dice: dice.choice(("@ann:example.org", "@ben:other", BOT, "", "@")),
    "event_id": lambda dice: f"${dice.randrange(40)}",
    "msgtype": lambda dice: dice.choice(("m.text", "m.image", "m.file", "m.emote", "m.notice", "m.location")),
    "body": lambda dice: str(mean(dice)),
    "rel_type": lambda dice: dice.choice(("m.thread", "m.replace", "m.annotation")),
    "state_key": lambda dice: dice.choice((BOT, "@ann:example.org", "")),
    "membership": lambda dice: dice.choice(("join", "invite", "leave", "ban")),
    "predecessor": lambda dice: {"room_id": mean(dice)},
    "replacement_room": lambda dice: dice.choice((ROOM, "!new:example.org", mean(dice))),
    "displayname": mean,
    "redacts": lambda dice: f"${dice.randrange(40)}",
}
_BODIES: Named = {
    "chat_kind": lambda dice: dice.choice(("dm", "group")),
    "person": lambda dice: {"id": f"p{dice.randrange(5)}"},
    "url": lambda dice: dice.choice(("", "ftp://x", "http://127.0.0.1:7/x", "http://[")),
}
_CALLS: Named = {
    "label": lambda dice: f"l{dice.randrange(9)}",
    "when": lambda dice: dice.choice(("in 1h", "every day at 9:00", str(mean(dice)))),
    "deliver": lambda dice: dice.choice(("origin", "here", "whatsapp", str(mean(dice)))),
    "wait": lambda dice: dice.choice((0, 0, 0.01, -1, 10**9)),
    "mode": lambda dice: dice.choice(("run", "session")),
}
_FRAMES: Named = {
    "text": lambda dice: f"/{dice.choice(SPECS).name} {mean(dice)}",
    "page": lambda dice: dice.randrange(60),
}


class Caller:
    """An agent that calls tools until it has made as many calls as it is told to, and says that it did."""

    notes = True

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._payloads = Payloads(dice, _CALLS | {"session": self._session})
        self._numbers = itertools.count(1)
        self.takes: dict[str, Any] = {}
        """The type of each tool's arguments."""
        self._sessions: list[str] = ["none"]
        self.wanted = 0
        self.cases: list[Case] = []
        self.done = 0
        """Calls that did what they were to do."""

    async def answer(self, work: Work) -> AsyncIterator[AgentEvent]:
        """Call any of the tools that are offered, whatever comes of it."""
        asked = plain_text(work.asked[-1].parts)
        wanted = self.wanted if asked.startswith("call ") else 0
        if self._dice.random() < 0.2:
            self._sessions = [*self._sessions[-20:], work.session]
        for _ in range(wanted):
            tool = self._dice.choice(work.tools.offered)
            given = self._payloads.of(self.takes[tool.name])
            call = ToolCall(f"c{next(self._numbers)}", tool.name, given)
            before = time.process_time()
            wrong = ""
            try:
                result = await work.tools.call(call)
                self.done += not result.failed
            except Exception as error:  # noqa: BLE001 -- that is what is looked for
                wrong = f"{error!r} was raised for {str(given)[:200]!a}"
            took = time.process_time() - before
            self.cases.append((f"tool {tool.name}", wrong or slow(took)))
        yield Text(f"heard: {asked[:40]}")

    def _session(self, dice: random.Random) -> str:
        return dice.choice(self._sessions)


class Sieve:
    """Takes what an adapter heard, and passes some of it on to the gateway."""

    def __init__(self, accept: Accept) -> None:
        self._accept = accept
        self._numbers = itertools.count()
        self.heard = 0
        """Arrivals, which are more than letters."""

    async def __call__(self, arrived: Arrived) -> Accepted:
        """Every letter is looked at, and every few arrivals go through."""
        if isinstance(arrived, Letter):
            assert not arrived.why.isidentifier(), f"{arrived.why} for {arrived.raw[:300]!a}"
            return await self._accept(arrived) if next(self._numbers) % 50 == 0 else Accepted.DEAD
        self.heard += 1
        return await self._accept(arrived) if next(self._numbers) % THROUGH == 0 else Accepted.NEW


class Deaf(Api):
    """Telegram, which refuses every call of its adapter."""

    async def call(self, method: str, *_: Any, **__: Any) -> Any:
        """No."""
        raise SendNever(f"{method} is too late")


class Bot(TelegramByWebhook):
    """The adapter of Telegram, whose platform is here."""

    def __init__(self, files: Shelf) -> None:
        super().__init__("main", Secret("7:token"), files, webhook="https://example.org")
        self._api = Deaf(Secret("7:token"), "http://127.0.0.1:1")
        self._me = Peer(7, username="bot")

    async def run(self, intake: Intake) -> None:
        """It is called; nobody has to be told where."""
        intake.connected()
        await asyncio.Event().wait()


class Synapse:
    """A homeserver that tells what it was given, and answers questions as it likes."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._payloads = Payloads(dice, _ROOMS)
        self.batches: list[Any] = []

    def answer(self, path: str) -> Any:
        """The answer to a call of the client API."""
        asked, _, query = path.partition("?")
        if asked.endswith("whoami"):
            return {"user_id": BOT, "device_id": "DEVICE"}
        if asked.endswith("/sync"):
            number = int(parse_qs(query)["since"][0])
            return self.batches[number] if number < len(self.batches) else []
        answer: Any = self.told() if "/event/" in asked else {}
        if asked.endswith("/state"):
            told = [self.told() for _ in range(self._dice.randrange(4))]
            answer = [one for one in told if self._dice.random() < 0.1 or "m.room.encryption" not in str(one)]
        if "/keys/" in asked:
            answer = {"device_keys": {"@ann:example.org": mean(self._dice)}, "one_time_keys": mean(self._dice)}
        if asked.endswith(quote(PRIVATE_CHATS)):
            answer = {"@ann:example.org": [ROOM]}
        return answer if self._dice.random() < 0.9 else mean(self._dice)

    def told(self) -> Any:
        """An event of a room."""
        made = self._payloads.of(Event)
        if isinstance(made, dict) and made.get("type") == "m.room.message" and self._dice.random() < 0.9:
            made["content"] = self._payloads.of(Content)
        return made

    def sent_to_device(self) -> Any:
        """Something for the bot's device alone."""
        sealed = {"algorithm": "m.olm.v1.curve25519-aes-sha2", "sender_key": "k", "ciphertext": mean(self._dice)}
        made = {"type": "m.room.encrypted", "sender": "@ann:example.org", "content": sealed}
        return made if self._dice.random() < 0.5 else self._payloads.spoiled(made)

    def batch(self, following: str) -> Json:
        """What a sync tells, of which the frame too may be wrong."""
        dice = self._dice
        timeline = {"events": [self.told() for _ in range(20)], "limited": dice.random() < 0.05, "prev_batch": "x"}
        joined = {ROOM: {"timeline": timeline, "state": {"events": [self.told() for _ in range(2)]}}}
        invited = {f"!i{dice.randrange(9)}": {"invite_state": {"events": [self.told()]}}}
        rooms = {"join": joined, "invite": invited, "leave": {"!l": {"timeline": {"events": [self.told()]}}}}
        told = {"rooms": rooms, "account_data": {"events": [{"type": PRIVATE_CHATS}, self.told()]}}
        told["to_device"] = {"events": [self.sent_to_device(), self.told()]}
        told["device_lists"] = {"changed": ["@ann:example.org", mean(dice)], "left": mean(dice)}
        told["device_one_time_keys_count"] = {"signed_curve25519": dice.choice((0, 50, mean(dice)))}
        told["device_unused_fallback_key_types"] = dice.choice(([], ["signed_curve25519"], mean(dice)))
        if dice.random() < 0.5:
            told = {name: self._payloads.spoiled(value) for name, value in told.items()}
        return {"rooms": {}} | told | {"next_batch": following}


class Wire(Web):
    """The way to a homeserver."""

    def __init__(self, server: Synapse, dice: random.Random) -> None:
        super().__init__("the homeserver", "http://127.0.0.1:9")
        self._homeserver = server
        self._dice = dice

    async def call(
        self,
        method: str,
        path: str = "",
        body: bytes | Mapping[str, Any] = b"",
        headers: Mapping[str, str] | None = None,
        slowest: float = 0.0,
    ) -> Returned:
        """One call, which the homeserver may refuse."""
        del method, body, headers, slowest
        if self._dice.random() < 0.02 and "/sync" not in path:
            return Returned(self._dice.choice((403, 404, 502)), {}, json.dumps(mean(self._dice)).encode())
        return Returned(200, {}, json.dumps(self._homeserver.answer(path)).encode())


class Wires:
    """A window's wire in memory: a frame is done with when the next one is asked for."""

    def __init__(self) -> None:
        self._next: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._asked = Changes()
        self.shown = 0
        self._next.put_nowait({"type": "websocket.connect"})
        self._taken = 0

    async def receive(self) -> dict[str, Any]:
        self._taken += 1
        self._asked.tell()
        return await self._next.get()

    async def send(self, message: dict[str, Any]) -> None:
        self.shown += len(message.get("text", ""))

    async def put(self, body: bytes, task: "asyncio.Task[None]") -> None:
        """Send a frame and wait until it is done with."""
        seen = self._taken
        text: dict[str, Any] = {"bytes": body}
        if len(body) % 2:
            text = {"text": body.decode(errors="backslashreplace")}
        self._next.put_nowait({"type": "websocket.receive", **text})
        task.add_done_callback(lambda _: self._asked.tell())
        await self._asked.until(
            lambda: True if self._taken > seen or task.done() else None, lambda: f"{body[:200]!a} is never done with"
        )


class Doors:
    """Every door of one gateway, and somebody who means ill at each."""

    def __init__(
        self, gateway: Gateway, agent: Caller, said: list[Delivery], changes: Changes, dice: random.Random
    ) -> None:
        self._gateway = gateway
        self._agent = agent
        agent.takes = {
            name: offer.arguments for name, offer in gateway._turns._answering._toolbox.with_notebook.items()
        }
        self._said = said
        self._changes = changes
        self._dice = dice
        self._numbers = itertools.count(1)
        self._sieve = Sieve(gateway.accept)
        self._telegram = next(a for a in gateway.adapters if isinstance(a, Bot))
        self._updates = self._telegram.webhook(self._sieve)
        self._posts = next(a for a in gateway.adapters if isinstance(a, Http)).webhook(self._sieve)
        self._slack = SlackDoor(next(a for a in gateway.adapters if isinstance(a, App)), self._sieve, dice)
        self._discord = DiscordDoor(next(a for a in gateway.adapters if isinstance(a, Guest)), self._sieve, dice)
        self._signal = SignalDoor(next(a for a in gateway.adapters if isinstance(a, Phone)), self._sieve, dice)
        self._whatsapp = WhatsAppDoor(next(a for a in gateway.adapters if isinstance(a, Line)), self._sieve, dice)
        self._feishu = FeishuDoor(next(a for a in gateway.adapters if isinstance(a, Bird)), self._sieve, dice)
        self._places = tuple(a for a in gateway.adapters if isinstance(a, Local))
        self._bodies, self._chats = Payloads(dice, _BODIES), Payloads(dice, _CHATS)
        self._frames = Payloads(dice, _FRAMES)
        self._line: Wires | None = None
        self._window: asyncio.Task[None] | None = None

    @property
    def arrivals(self) -> int:
        """Payloads that were understood as somebody's message."""
        return self._sieve.heard

    @property
    def kinds(self) -> dict[str, tuple[int, Callable[[int], Awaitable[list[Case]]]]]:
        """The kinds of cases, with how many of each make a round of a hundred."""
        one = self._one_by_one
        return {
            "command": (12, one(self._command)),
            "tool": (16, self._tools),
            "telegram": (11, one(self._update)),
            "matrix": (12, self._sync),
            "slack": (7, one(self._slack.slack_event)),
            "discord": (7, one(self._discord.discord_event)),
            "signal": (6, one(self._signal.signal_event)),
            "whatsapp": (6, one(self._whatsapp.whatsapp_event)),
            "feishu": (6, one(self._feishu.feishu_event)),
            "http": (10, one(self._post)),
            "frame": (7, one(self._frame)),
        }

    def _one_by_one(self, case: Callable[[], Awaitable[str]]) -> Callable[[int], Awaitable[list[Case]]]:
        async def cases(count: int) -> list[Case]:
            done: list[Case] = []
            for _ in range(count):
                before = time.process_time()
                try:
                    name = await case()
                except Exception as error:  # noqa: BLE001 -- that is what is looked for
                    done.append((case.__name__.strip("_"), f"{error!r} was raised"))
                else:
                    done.append((name, slow(time.process_time() - before)))
                if done[-1][1]:
                    break
            return done

        return cases

    async def others(self) -> None:
        """Somebody else is answered."""
        text = f"and I {next(self._numbers)}?"
        place = Place(Address("whatsapp", "main", chat="kind"), Kind.DM)
        await self._says(place, Identity("whatsapp", "main", "kind"), text)
        await self._answered(f"heard: {text}")

    async def _answered(self, text: str) -> None:
        await self._changes.until(
            lambda: True if any(text in delivery.text for delivery in self._said) else None,
            lambda: f"{text} was never said",
        )

    async def _says(self, place: Place, who: Identity, text: str, **more: Any) -> None:
        speaker = Speaker(who, hostile(self._dice, 8) if who.user == "mean" else "")
        await self._gateway.accept(Arrival(place, f"m{next(self._numbers)}", speaker, (Text(text),), 0.0, **more))

    async def _command(self) -> str:
        spec, dice = self._dice.choice(SPECS), self._dice
        who = dice.choice((Identity("whatsapp", "main", "mean"), HOST))
        place = Place(Address("whatsapp", "main", chat=who.user), Kind.DM)
        if dice.random() < 0.3:
            place = Place(Address("whatsapp", "main", chat="club", thread=dice.choice(("", "t"))), Kind.GROUP, "club")
        typed = f"/{spec.name} {mean(dice)}" if dice.random() < 0.9 else f"/{spec.name}"
        quotes = dice.choice(("", "", str(mean(dice))[:60], self._said[-1].key if self._said else ""))
        await self._says(place, who, typed, quotes=quotes, mentions_agent=True)
        return f"/{spec.name}"

    async def _tools(self, count: int) -> list[Case]:
        self._agent.cases = []
        for who in (Identity("whatsapp", "main", f"calls{self._dice.randrange(3)}"), HOST):
            # Strangers have no notebook.
            self._agent.wanted = count // 2
            text = f"call {next(self._numbers)}"
            await self._says(Place(Address("whatsapp", "main", chat=f"calls of {who.user}"), Kind.DM), who, text)
            await self._answered(f"heard: {text}")
        return self._agent.cases

    async def _update(self) -> str:
        body = self._chats.encoded(Update)
        foreign = self._dice.choice(_FOREIGN).encode()
        if self._dice.random() < 0.05:
            body = body.replace(b'"text"', b'"%s"' % foreign)
        secret = secret_of(Secret("7:token"), "main")
        answer = await post(self._updates, "/in/telegram/main", body, {HEADER: secret})
        # More than a body may have is told to Telegram, which gives up in time.
        assert answer.status in (200, 413), f"an update was answered {answer.status}: {body[:300]!a}"
        return "telegram update"

    async def _post(self) -> str:
        made = self._bodies.encoded(Sent)
        answer = await post(self._posts, "/in/http/alpha", made, signed(SECRET, made, time.time()))
        assert answer.status < 500, f"{made[:300]!a} was answered {answer.status}"
        return "http body"

    async def _sync(self, count: int) -> list[Case]:
        """Batches of twenty events each, until so many were told."""
        server = Synapse(self._dice)
        server.batches = [server.batch(str(n)) for n in range(1, count // 20 + 2)]
        home = Homeserver("http://127.0.0.1:9", BOT)
        home._web = Wire(server, self._dice)
        adapter = Matrix("main", home, Shelf(), lambda _: True, Bucket(1, 1.0))
        # What ids no database keeps, its locker doesn't either.
        adapter.remember(OwnLocker(self._gateway.patient, adapter))
        cursor, done = Bookmark("0"), list[Case]()
        for number in range(len(server.batches)):
            before, wrong, tries = time.process_time(), "", 0
            while int(cursor.value) == number and not wrong:
                tries += 1
                try:
                    await adapter.run(Given(self._sieve, cursor))
                except Disconnected as error:
                    wrong = f"it is stuck: {error}" if tries > 200 else ""
                except Exception as error:  # noqa: BLE001 -- that is what is looked for
                    wrong = f"{error!r} was raised for {str(server.batches[number])[:300]!a}"
            done += [("matrix event", wrong or slow((time.process_time() - before) / 20))] * 20
            if wrong:
                break
        return done

    async def _frame(self) -> str:
        if self._window is None or self._window.done():
            await self._open()
        assert self._line is not None
        assert self._window is not None
        await self._line.put(self._frames.encoded(Asked), self._window)
        if self._window.done():
            error = self._window.exception()
            assert error is None, f"a window ended by {error!r}"
        return "frame"

    async def _open(self) -> None:
        terminal, web = self._places
        windows = Windows(self._gateway, SignIn(b"key", "token"), (terminal, web), Folder(Path("nowhere")), "Ann")
        self._line = Wires()
        scope = {
            "type": "websocket",
            "path": "/live",
            "headers": [(b"authorization", b"Bearer token"), (b"host", b"localhost")],
            "query_string": b"",
            "server": ("127.0.0.1", 80),
            "subprotocols": [],
        }
        live = next(route for route in windows.routes() if getattr(route, "path", "") == "/live")
        self._window = asyncio.create_task(live.handle(scope, self._line.receive, self._line.send))  # type: ignore[arg-type]

    async def close(self) -> None:
        """Close the window."""
        if self._window is not None:
            self._window.cancel()
            await asyncio.wait([self._window])
