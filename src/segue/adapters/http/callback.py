"""The call out: one signed POST for each thing that the platform is to do."""

from typing import Literal

import msgspec

from segue.adapters.http.signature import Signing
from segue.adapters.shared.web import SLOWEST, Web
from segue.core.contracts.database import Clock
from segue.core.lanes import Address
from segue.core.values import Secret, Value
from segue.errors import SendNever

LARGEST = 64 * 1024
"""Bytes of an answer."""


class CalledFile(Value, frozen=True):
    """A file that the platform may fetch, with a GET of the same signature."""

    name: str
    media: str
    url: str
    """A path at the server that the platform calls with arrivals."""


class Call(Value, frozen=True):
    """The body of a call to the callback; a field that a kind doesn't need is empty."""

    key: str
    kind: Literal["message", "edit", "delete", "typing", "open_thread"]
    address: Address
    text: str = ""
    message: str = ""
    """The id that an edit changes."""
    in_reply_to: str = ""
    """The last arrival's id."""
    answers: tuple[str, ...] = ()
    """The ids of all arrivals answered."""
    session: str = ""
    title: str = ""
    choices: tuple[str, ...] = ()
    """Buttons: what each says when it is pressed."""
    question: str = ""
    """The id of the question that it shows."""
    only: str = ""
    """The one person who is to see it."""
    file: CalledFile | None = None


class Answer(Value, frozen=True):
    """The callback's answer; other fields are its own affair."""

    id: str | int = ""
    thread: str | int = ""


_answer = msgspec.json.Decoder(Answer)


class Callback:
    """The platform's end of one account: all messages go there."""

    def __init__(self, url: str, secret: Secret | Signing, clock: Clock, slowest: float = SLOWEST) -> None:
        self._signing = Signing.of(secret)
        self._clock = clock
        self._web = Web("the callback", url, slowest=slowest, largest=LARGEST, clock=clock)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._web.close()

    async def call(self, call: Call) -> bytes:
        """Make one call and return the body of its answer."""
        body = msgspec.json.encode(call)
        headers = {"Content-Type": "application/json", **self._signing.sign(body, self._clock())}
        answer = self._web.taken(await self._web.call("POST", "", body, headers))
        if len(answer) > LARGEST:
            raise SendNever(f"the callback's answer has more than {LARGEST} bytes")
        return answer


def id_in(body: bytes, field: Literal["id", "thread"]) -> str:
    """The id that an answer gives; `SendNever` if it gives none."""
    try:
        found = str(getattr(_answer.decode(body), field))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SendNever("the callback's answer isn't a JSON object") from error
    if not found.strip() or "\0" in found:
        raise SendNever(f'the callback\'s answer has no "{field}"')
    return found
