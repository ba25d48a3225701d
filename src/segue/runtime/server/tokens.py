"""Tokens as the server takes them: who calls, by the token that the call shows."""

from collections import OrderedDict, deque

from starlette.requests import HTTPConnection

from segue.changes.people import tokens
from segue.changes.people.tokens import Bearer, Still, TokenScope
from segue.core.contracts.database import Clock
from segue.errors import Refusal, Refused
from segue.runtime.retrying import Patient
from segue.runtime.server.callers import vouch

_TRIES = 5
_WITHIN = 600.0
_PEERS = 1000
"""Addresses whose tries are kept in mind."""


class Tokens:
    """Tells for whom a call is made."""

    def __init__(self, store: Patient, still: Still, clock: Clock) -> None:
        self._store = store
        self._still = still
        self._clock = clock
        self._tries: OrderedDict[str, deque[float]] = OrderedDict()

    async def bearer(self, call: HTTPConnection, scope: TokenScope) -> Bearer:
        """The person for whom a call is made, by its Authorization; raises `Refused` if that doesn't count."""
        kind, _, token = call.headers.get("authorization", "").partition(" ")
        shown = token.strip() if kind.lower() == "bearer" else ""
        bearer = await self.person_of(shown, scope, call.client.host if call.client else "")
        vouch(call.scope)
        return bearer

    async def person_of(self, token: str, scope: TokenScope, peer: str = "") -> Bearer:
        """The person for whom a token acts; raises `Refused` if it doesn't count for this.

        Tokens that don't count are written down and counted. An address that showed too many is told no more than that,
        and nothing more is written; a token that counts does so from there, too: others may share the address.
        """
        at = self._clock()
        found = await self._store.read(tokens.person_of, token, scope, self._still, at)
        if isinstance(found, Refusal):
            if self._too_many(peer, at):
                raise Refused(Refusal.TOO_MANY_TOKENS)
            await self._store.write(tokens.refuse, token, scope, found, at)
            raise Refused(found)
        if found.stale(at):
            await self._store.write(tokens.use, found.token.id, at)
        return found

    def _too_many(self, peer: str, at: float) -> bool:
        """Whether an address showed too many tokens that don't count before this one, which is counted."""
        tries = self._tries.setdefault(peer, deque(maxlen=_TRIES))
        self._tries.move_to_end(peer)
        if len(self._tries) > _PEERS:
            self._tries.popitem(last=False)
        over = len(tries) == _TRIES and tries[0] > at - _WITHIN
        if not over:
            tries.append(at)
        return over
