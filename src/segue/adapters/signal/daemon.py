"""The signal-cli daemon: calls by JSON-RPC, and its stream of events.

Law: what the daemon has written to the stream it has forgotten: whoever reads an event keeps it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx2

from segue.adapters.shared.web import Web
from segue.adapters.shared.webhooks import from_json
from segue.core.messages import Sending
from segue.errors import Disconnected, SendError, SendLater, SendNever, SendUnsure

DEFAULT = "http://127.0.0.1:8080"
START = "signal-cli daemon --http 127.0.0.1:8080 --receive-mode on-connection"
_SILENT = 50.0
"""Seconds without a sign of life, of which there is one every fifteen, after which the stream is dead."""
_LARGEST = 16 * 1024 * 1024
"""Bytes of an event."""
_BAD_REQUEST = 400
_OF_ALL = {"version", "listAccounts", "startLink", "finishLink"}
"""Methods that are for no account."""


class Daemon:
    """Calls a daemon for one account; raises nothing but `SendError`s."""

    def __init__(self, url: str, account: str = "") -> None:
        self._url = url.rstrip("/")
        self._account = account
        self._web = Web("The signal-cli daemon", self._url, Sending.BLIND)
        self.close = self._web.close

    async def call(self, method: str, /, slowest: float = 0.0, **params: Any) -> Any:
        """The result of a method; parameters that are None are left out."""
        given = {name: value for name, value in params.items() if value is not None}
        if self._account and method not in _OF_ALL:
            given["account"] = self._account
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given}
        returned = await self._web.call("POST", "/api/v1/rpc", body, slowest=slowest)
        told = self._web.told(returned)
        if not isinstance(told, dict) or not ({"result", "error"} & told.keys()):
            self._web.taken(returned)
            raise SendUnsure("The signal-cli daemon didn't answer what it was asked.")
        if isinstance(error := told.get("error"), dict):
            raise self._refused(error)
        return told.get("result")

    async def version(self) -> str:
        """The daemon's version; raises `SendLater` with the way to start one where none answers."""
        try:
            found = await self.call("version", slowest=10.0)
        except (SendLater, SendUnsure) as error:
            raise SendLater(f"No signal-cli daemon answers at {self._url}. Start one: {START}") from error
        return str(found.get("version", "")) if isinstance(found, dict) else ""

    async def accounts(self) -> list[str] | None:
        """The numbers that the daemon has; None if it was started for one alone, of which it tells nothing."""
        try:
            known = await self.call("listAccounts")
        except SendNever:
            return None
        return [str(one.get("number", "")) for one in known if isinstance(one, dict)]

    @asynccontextmanager
    async def events(self) -> AsyncIterator[AsyncIterator[list[Any]]]:
        """The events as they come, those that came together in one list; what isn't JSON comes as it is."""
        path = f"{self._url}/api/v1/events?account={quote(self._account, safe='')}"
        # It runs on this machine or beside it: no proxy leads there.
        client = httpx2.AsyncClient(trust_env=False, timeout=httpx2.Timeout(_SILENT, connect=5.0))
        try:
            async with client, client.stream("GET", path, headers={"Accept": "text/event-stream"}) as response:
                if response.status_code == _BAD_REQUEST:
                    raise self.stranger()
                if not response.is_success:
                    raise Disconnected(f"The signal-cli daemon answered {response.status_code}.")
                yield _told(response)
        except httpx2.TransportError as error:
            raise Disconnected(f"The line to the signal-cli daemon broke ({type(error).__name__}).") from error

    def stranger(self) -> SendLater:
        """Word that the daemon hasn't got the account."""
        return SendLater(f"The signal-cli daemon has no account {self._account}. `segue add signal` links one.")

    def _refused(self, error: dict[str, Any]) -> SendError:
        """The outcome of a call by the code of its error; after an unknown one nobody knows what became of it."""
        code, why = error.get("code"), str(error.get("message", "")).rstrip(".!")
        results = [one for one in _results(error) if isinstance(one, dict)]
        kinds = {str(one.get("type", "")) for one in results}
        refusal: SendError
        match code:
            case -5:
                refusal = _patience(why, results)
            case -4:
                refusal = SendNever("Their safety number has changed. `signal-cli trust` accepts it.")
            case -1 if "NETWORK_FAILURE" in kinds:
                refusal = SendUnsure("The signal-cli daemon couldn't reach Signal.")
            case -1 if "UNREGISTERED_FAILURE" in kinds:
                refusal = SendNever("They aren't on Signal any more.")
            case -32602 if "account" in why:
                refusal = self.stranger()
            case -1 | -32600 | -32601 | -32602:
                refusal = SendNever(f"The signal-cli daemon refused it: {why}.")
            case _:
                refusal = SendUnsure(f"The signal-cli daemon failed: {why}.")
        return refusal


def _patience(why: str, results: list[dict[str, Any]]) -> SendLater:
    waits = [one.get("retryAfterSeconds") for one in results]
    if any(one.get("token") for one in results):
        why += "; Signal wants a captcha, as `signal-cli submitRateLimitChallenge --help` says"
    seconds = max((float(wait) for wait in waits if isinstance(wait, int)), default=None)
    return SendLater(f"Signal asks for patience: {why}.", seconds)


def _results(error: dict[str, Any]) -> list[Any]:
    """The outcome for each device that a message was for."""
    data = error.get("data")
    response = data.get("response") if isinstance(data, dict) else None
    results = response.get("results") if isinstance(response, dict) else None
    return results if isinstance(results, list) else []


async def _told(response: httpx2.Response) -> AsyncIterator[list[Any]]:
    """The events of a stream. Only a line feed ends a line: what else may end one stands in people's words."""
    rest, data = b"", list[bytes]()
    async for piece in response.aiter_raw():
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) + sum(map(len, data)) > _LARGEST:
            raise Disconnected("The signal-cli daemon told something endless.")
        events = []
        for line in lines:
            name, _, value = line.rstrip(b"\r").partition(b":")
            if name == b"data":
                data.append(value.removeprefix(b" "))
            elif not line.strip() and data:
                events.append(from_json(b"\n".join(data)))
                data = []
        if events:
            yield events
