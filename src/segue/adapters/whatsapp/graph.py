"""The Graph API, as far as one WhatsApp number needs it: calls whose errors say what became of them."""

import json
from typing import Any

from segue.adapters.shared.connections import Returned
from segue.adapters.shared.downloads import server_of
from segue.adapters.shared.web import Web, form
from segue.adapters.whatsapp.outcomes import outcome
from segue.adapters.whatsapp.payloads import Fault, decode
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

    async def message(self, **fields: Any) -> Json:
        """Send something, or say that it was read; fields that are None are left out."""
        told = {name: value for name, value in fields.items() if value is not None}
        return await self._call("POST", f"/{self.number}/messages", {"messaging_product": "whatsapp", **told})

    async def media(self, id: str) -> Json:
        """Where a file lies, for a few minutes, and how large it is."""
        return await self._call("GET", f"/{id}?phone_number_id={self.number}")

    async def upload(self, name: str, media: str, content: bytes) -> str:
        """Keep a file with WhatsApp; returns its id."""
        body, headers = form({"messaging_product": "whatsapp", "type": media}, {"file": (name, content, media)})
        return str((await self._call("POST", f"/{self.number}/media", body, headers)).get("id", ""))

    async def _call(
        self, method: str, path: str, body: bytes | Json = b"", headers: dict[str, str] | None = None
    ) -> Json:
        returned = await self._web.call(method, path, body, {**(headers or {}), **dict([self.bearer])})
        told = self._told(returned)
        if "error" in told or returned.status >= 400:
            try:
                fault = decode(told.get("error"), Fault)
            except Invalid:
                raise self._web.refused(returned) from None
            raise outcome(fault, returned.status)
        return told

    def _told(self, returned: Returned) -> Json:
        try:
            told = json.loads(returned.body)
        except (ValueError, RecursionError):
            self._web.taken(returned)
            raise SendUnsure("WhatsApp didn't answer in JSON") from None
        return told if isinstance(told, dict) else {}
