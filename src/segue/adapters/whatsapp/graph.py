"""The Graph API, as far as one WhatsApp number needs it: calls whose errors say what became of them."""

from typing import Any

from segue.adapters.shared.downloads import server_of
from segue.adapters.shared.web import Web, form
from segue.adapters.whatsapp.faults import Fault
from segue.adapters.whatsapp.payloads import decode
from segue.core.messages import Sending
from segue.core.values import Secret
from segue.errors import Invalid, SendUnsure

PUBLIC = "https://graph.facebook.com/v25.0"
_FILES = (".fbsbx.com", ".facebook.com", ".whatsapp.net")
"""Where WhatsApp keeps files."""

Json = dict[str, Any]


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
    def bearer(self) -> tuple[str, str]:
        """The header that opens what the token may see."""
        return "Authorization", f"Bearer {self._token.reveal()}"

    def is_own(self, url: str) -> bool:
        """Whether a file lies with WhatsApp, so that whoever keeps it may be shown the token."""
        scheme, host = server = server_of(url)
        return server == server_of(self._base) or (scheme == "https" and host.endswith(_FILES))

    async def about(self, *fields: str) -> Json:
        """Facts about the number."""
        return await self._call("GET", f"/{self.number}?fields={','.join(fields)}")

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

    async def media(self, id: str) -> Json:
        """Where a file lies, for a few minutes."""
        return await self._call("GET", f"/{id}?phone_number_id={self.number}")

    async def upload(self, name: str, media: str, content: bytes) -> str:
        """Keep a file with WhatsApp; returns its id."""
        body, headers = form({"messaging_product": "whatsapp", "type": media}, {"file": (name, content, media)})
        return str((await self._call("POST", f"/{self.number}/media", body, headers)).get("id", ""))

    async def _message(self, **fields: Any) -> Json:
        return await self._call("POST", f"/{self.number}/messages", {"messaging_product": "whatsapp", **fields})

    async def _call(
        self, method: str, path: str, body: bytes | Json = b"", headers: dict[str, str] | None = None
    ) -> Json:
        returned = await self._web.call(method, path, body, {**(headers or {}), **dict([self.bearer])})
        told = self._web.told(returned)
        answer: Json = told if isinstance(told, dict) else {}
        if "error" in answer or returned.status >= 400:
            try:
                fault: Fault = decode(answer.get("error"), Fault)
            except Invalid:
                raise self._web.refused(returned) from None
            raise fault.outcome(returned.status)
        return answer
