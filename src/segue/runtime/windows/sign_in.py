"""Sign-in: who may open a window. A terminal shows the token of the data folder, a browser the cookie of its sign-in.

A browser signs in by a link that the terminal or the log printed and a button: the link works once and for ten minutes,
and whatever only looks at it uses nothing up. A cookie is signed by a key that the database keeps, so it outlives a
restart; it ends after 30 days, when its browser signs out, or with the key.
"""

import contextlib
import hmac
import os
import secrets
import time
from pathlib import Path

from starlette.requests import HTTPConnection, Request

from segue.changes.people import browsers
from segue.changes.people.browsers import LIFETIME
from segue.core.contracts.database import Clock
from segue.runtime.retrying import Patient
from segue.runtime.server.callers import vouch

COOKIE = "segue"
SECURE_COOKIE = "__Host-segue"
"""Name of the cookie behind TLS: browsers let nobody but this very host set it."""
_LINK = 600.0
"""Seconds that a sign-in link works."""


class SignIn:
    """Tells the host's own terminals and browsers from everybody else's."""

    def __init__(
        self,
        key: bytes,
        token: str,
        clock: Clock = time.monotonic,
        now: Clock = time.time,
        store: Patient | None = None,
    ) -> None:
        self._key = key
        self._token = token
        self._clock = clock
        self._now = now
        self._store = store
        self._links: dict[str, float] = {}
        self._signed_out: frozenset[str] = frozenset()

    @classmethod
    async def open(cls, store: Patient, folder: Path) -> "SignIn":
        """The sign-in of a data folder."""
        await store.write(browsers.begin, secrets.token_hex(32))
        made = cls(b"", token_in(folder), store=store)
        await made.refresh()
        return made

    async def refresh(self) -> None:
        """Learn of a new key, and of browsers that signed out, here or elsewhere."""
        if self._store is not None:
            found = await self._store.read(browsers.keys)
            self._key, self._signed_out = found.key, found.signed_out

    async def note(self, cookie: str, where: str) -> None:
        """Write down that a browser signed in."""
        if self._store is not None:
            await self._store.write(browsers.sign_in, cookie.partition(".")[0], where, self._now())

    async def sign_out(self, browser: str) -> None:
        """Let a browser's cookie count no more."""
        if self._store is not None:
            await self._store.write(browsers.sign_out, browser, self._now())
        await self.refresh()

    def link(self) -> str:
        """A path that signs one browser in."""
        now = self._clock()
        self._links = {code: until for code, until in self._links.items() if until > now}
        code = secrets.token_urlsafe(18)
        self._links[code] = now + _LINK
        return f"/signin?code={code}"

    def sign_in(self, code: str) -> str | None:
        """The cookie for a link's code; None if it isn't one, was used, or is too old."""
        until = self._links.pop(code, None)
        if until is None or until < self._clock():
            return None
        signed = f"{secrets.token_hex(8)}.{self._now() + LIFETIME:.0f}"
        return f"{signed}.{self._sign(signed)}"

    def browser(self, cookie: str) -> str | None:
        """The browser that a cookie was given to, while it counts."""
        signed, _, signature = cookie.rpartition(".")
        browser, _, ends = signed.partition(".")
        if not hmac.compare_digest(_bytes(signature), _bytes(self._sign(signed))) or browser in self._signed_out:
            return None
        return browser if browser and ends.isdecimal() and self._now() < int(ends) else None

    def shown_by(self, request: HTTPConnection) -> str | None:
        """The browser that makes a call; None if it isn't signed in."""
        found = self.browser(request.cookies.get(SECURE_COOKIE, "") or request.cookies.get(COOKIE, ""))
        if found is not None:
            vouch(request.scope)
        return found

    def is_terminal(self, authorization: str) -> bool:
        """Whether somebody shows the data folder's token."""
        return hmac.compare_digest(_bytes(authorization), _bytes(f"Bearer {self._token}"))

    def knows(self, request: Request) -> bool:
        """Whether a call is the host's own: from a terminal, or from a browser that signed in."""
        shown = request.headers.get("authorization", "")
        return self.is_terminal(shown) or self.shown_by(request) is not None

    def _sign(self, signed: str) -> str:
        return hmac.digest(self._key, _bytes(signed), "sha256").hex()


def _bytes(text: str) -> bytes:
    """The bytes of a header, whatever it holds."""
    return text.encode(errors="surrogatepass")


def token_in(folder: Path) -> str:
    """The token that only who can read the data folder knows; made if there is none."""
    path = folder / "token"
    if not path.exists():
        # Linked into place when it is whole, so that nobody reads half of it.
        made = folder / f".token-{secrets.token_hex(8)}"
        with os.fdopen(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(32))
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(made)
        made.unlink()
    return path.read_text()
