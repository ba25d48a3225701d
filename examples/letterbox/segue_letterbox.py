"""A chat platform made of files, and an agent that shouts: all that a package needs to give Segue both.

A message is a file in the folder's `in`, such as `7.json` with {"chat": "kitchen", "who": "ann", "text": "hello"}.
If the account has a secret, it is posted to /in/letterbox/ACCOUNT: the same JSON with an "id", and the secret in
X-Letterbox-Secret. With "file": "cat.png" it brings that file of the folder's `files` along. Answers appear in
`out/kitchen`, if there is such a folder.
"""

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import whole
from segue.adapters.shared.webhooks import door, posted, prove
from segue.core.contracts.adapters import Accept, Arrived, Connection, Files, Intake
from segue.core.contracts.agents import Event, Work
from segue.core.lanes import Kind, Place
from segue.core.messages import Arrival, Delivery, File, Sending, Text, plain_text
from segue.core.values import Secret
from segue.errors import SendLater, SendNever

HEADER = "X-Letterbox-Secret"
MEDIA = "application/octet-stream"
NAME = re.compile(r"[a-z0-9-]{1,60}")  # nothing that leads out of the folder


class Note(msgspec.Struct, frozen=True):
    chat: str
    who: str
    text: str
    kind: Kind = Kind.DM
    id: str = ""
    file: str = ""


class Letterbox:
    """Fetches its messages."""

    platform = "letterbox"
    sending = Sending.KEYED
    connection = Connection.ONE

    def __init__(self, account: str, folder: Path, files: Files, secret: Secret | None = None) -> None:
        self.account = account
        self._own, self._folder, self._files, self._secret = Account(self.platform, account), folder, files, secret
        for name in ("in", "done", "out", "files"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    async def run(self, intake: Intake) -> None:
        intake.connected()
        while True:
            for file in sorted((self._folder / "in").glob("*.json")):
                await intake.accept(self._arrived(file.read_bytes(), file.stem))
                # Only now may it be forgotten: if the process dies before this line, the message comes again.
                file.rename(self._folder / "done" / file.name)
            await asyncio.sleep(0.05)

    def _arrived(self, raw: bytes, id: str = "") -> Arrived:
        try:
            note = msgspec.json.decode(raw, type=Note)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return self._own.letter(raw, error)
        place, speaker = Place(self._own.address(note.chat), note.kind), self._own.speaker(note.who, note.who)
        # A file is only named here. It is fetched if whoever sent it may speak: strangers fill nobody's disk.
        parts = (Text(note.text), File(note.file, MEDIA, "")) if note.file else (Text(note.text),)
        arrival = Arrival(place, note.id or id, speaker, parts, time.time())
        return self._own.unfetched(arrival, lambda: self._fetch(note.file), raw.decode())

    async def _fetch(self, name: str) -> list[File | str]:
        file = self._folder / "files" / Path(name).name
        if not file.is_file():
            return [f"{name} isn't there."]
        return [await self._files.keep(name, MEDIA, whole(file.read_bytes()))]

    def fits(self, text: str) -> bool:
        return len(text) <= 100_000

    async def send(self, delivery: Delivery) -> str:
        chat = self._folder / "out" / delivery.address.chat
        if not NAME.fullmatch(delivery.address.chat) or not chat.is_dir():
            raise SendNever(f"Nobody reads {chat}. Make that folder.")
        # The key is in the file's name: the same key is the same file, also after a crash.
        key = hashlib.sha256(delivery.key.encode()).hexdigest()[:20]
        draft, final = chat / f"{key}.draft", chat / f"{time.time_ns()}-{key}.txt"
        try:
            for known in chat.glob(f"*-{key}.txt"):
                return known.stem
            draft.write_text(delivery.text)
            draft.rename(final)
        except OSError as error:
            raise SendLater(str(error)) from error
        return final.stem


class CalledLetterbox(Letterbox):
    """Is called with its messages."""

    connection = Connection.ANY

    async def run(self, intake: Intake) -> None:
        """Nothing has to be kept up."""

    def webhook(self, accept: Accept) -> ASGIApp:
        async def answer(request: Request) -> Response:
            prove(request, HEADER, self._secret.reveal() if self._secret else "")
            await accept(self._arrived(await posted(request)))
            return Response()  # Only now, too.

        return door(answer)


class Shouting:
    def __init__(self, marks: int) -> None:
        self._end = "!" * marks

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        for draft in work.asked:
            for word in plain_text(draft.parts).upper().split():
                yield Text(f"{word} ")
        yield Text(self._end)


class LetterboxKeys(msgspec.Struct, frozen=True):
    """The keys of [letterbox.ACCOUNT] in segue.toml."""

    folder: str
    secret: Secret | None = None

    def adapter(self, account: str, files: Files) -> Letterbox:
        kind = CalledLetterbox if self.secret else Letterbox
        return kind(account, Path(self.folder), files, self.secret)


class ShoutingKeys(msgspec.Struct, frozen=True):
    """The keys of [agent] in segue.toml with kind = "shouting"."""

    marks: int = 1

    def agent(self) -> Shouting:
        return Shouting(self.marks)
