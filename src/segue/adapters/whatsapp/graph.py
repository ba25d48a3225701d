"""The Graph API, as far as one WhatsApp number needs it: its calls, and what each of its errors means for a message."""

from collections.abc import Mapping
from typing import Any

from segue.adapters.shared.decoding import decode
from segue.adapters.shared.downloads import Limits, NotFetched, server_of
from segue.adapters.shared.web import Web, form
from segue.core.messages import Sending, SendStatus
from segue.core.values import Plain, Secret, Value
from segue.errors import Invalid, SendError, SendLater, SendNever, SendUnsure

PUBLIC = "https://graph.facebook.com/v25.0"
_FILES = (".fbsbx.com", ".facebook.com", ".whatsapp.net")
"""Where WhatsApp keeps files."""
_PATIENCE = {4: 60.0, 80007: 60.0, 130429: 10.0, 131048: 3600.0, 131056: 12.0, 133016: 3600.0}
"""Codes of too many calls or messages, with the seconds to wait."""
_TOKEN = frozenset({3, 10, 190, *range(200, 300)})
"""Codes of a token that doesn't hold, or may not: once the host has given another, the message can go out."""
_BROKEN = frozenset({1, 2, 131000, 131016, 131057})
"""Codes of something that is broken at WhatsApp; nobody knows whether a message was taken."""
_WORDS = {
    131026: "WhatsApp can't deliver it: they may not have WhatsApp, or an old one.",
    131030: "A test number writes only to the numbers that its app lists. Add theirs under API Setup.",
    131042: "WhatsApp wants to be paid: the free messages are used up, and the business has no payment method.",
    131047: "WhatsApp lets an account answer for 24 hours after somebody last wrote. They must write first.",
}
Json = dict[str, Any]


class Fault(Value, frozen=True):
    """A reason why something wasn't done."""

    code: int = 0
    title: str = ""
    message: str = ""
    error_data: Mapping[str, Plain] = {}

    @property
    def words(self) -> str:
        """The reason, as WhatsApp words it."""
        return str(self.error_data.get("details") or self.message or self.title or f"error {self.code}")

    @property
    def why(self) -> str:
        """The reason, in words fit for people."""
        return _WORDS.get(self.code, f"WhatsApp: {self.words}")

    def outcome(self, status: int) -> SendError:
        """The outcome of a call that was answered with it."""
        if self.code in _PATIENCE:
            return SendLater(self.why, _PATIENCE[self.code])
        if self.code in _TOKEN:
            return SendLater(f"WhatsApp doesn't take the token ({self.words}).")
        return SendUnsure(self.why) if self.code in _BROKEN or status >= 500 else SendNever(self.why)

    @property
    def fate(self) -> SendStatus:
        """What became of a message that WhatsApp took and couldn't send."""
        return SendStatus.LATER if self.code in _PATIENCE or self.code in _BROKEN else SendStatus.NEVER


class Graph:
    """Calls the Graph API with one token, for one number."""

    def __init__(self, token: Secret, number: str, base: str = PUBLIC) -> None:
        self.number = number
        self._token = token
        self._base = base
        self._web = Web("WhatsApp", base, Sending.BLIND)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._web.close()

    @property
    def _bearer(self) -> tuple[str, str]:
        return "Authorization", f"Bearer {self._token.reveal()}"

    async def about(self) -> Json:
        """The number as people know it, and whose it is."""
        return await self._call("GET", f"/{self.number}?fields=display_phone_number,verified_name")

    async def send(self, **message: Any) -> str:
        """Send a message; returns its id."""
        sent = await self._message(**message)
        try:
            return str(sent["messages"][0]["id"])
        except (KeyError, IndexError, TypeError) as error:
            raise SendUnsure("WhatsApp didn't name the message.") from error

    async def typing(self, message: str) -> None:
        """Show that somebody writes, by saying that a message was read."""
        await self._message(status="read", message_id=message, typing_indicator={"type": "text"})

    async def file(self, id: str) -> tuple[str, Limits]:
        """Where a file lies, for a few minutes; only who keeps files for WhatsApp is asked, and shown the token."""
        url = str((await self._call("GET", f"/{id}?phone_number_id={self.number}")).get("url", ""))
        scheme, host = server = server_of(url)
        if server != server_of(self._base) and not (scheme == "https" and host.endswith(_FILES)):
            raise NotFetched("It isn't kept by WhatsApp.")
        return url, Limits(trusted=url, opens=(self._bearer,))

    async def upload(self, name: str, media: str, content: bytes) -> str:
        """Keep a file with WhatsApp; returns its id."""
        body, headers = form({"messaging_product": "whatsapp", "type": media}, {"file": (name, content, media)})
        return str((await self._call("POST", f"/{self.number}/media", body, **headers)).get("id", ""))

    async def _message(self, **fields: Any) -> Json:
        return await self._call("POST", f"/{self.number}/messages", {"messaging_product": "whatsapp", **fields})

    async def _call(self, method: str, path: str, body: bytes | Json = b"", **headers: str) -> Json:
        returned = await self._web.call(method, path, body, {**headers, **dict([self._bearer])})
        told = self._web.told(returned)
        answer: Json = told if isinstance(told, dict) else {}
        if "error" in answer or returned.status >= 400:
            try:
                fault = decode(answer.get("error"), Fault, "The Graph API")
            except Invalid:
                raise self._web.refused(returned) from None
            raise fault.outcome(returned.status)
        return answer
