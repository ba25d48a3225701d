"""Sign-in: who may open a window. A terminal shows the token of the data folder, a browser the cookie of its sign-in.

A browser signs in once, by a link that the terminal or the log printed; the link works once and for ten minutes, and
its code leaves the address at once. A cookie is signed by a key that the database keeps, so it outlives a restart.
"""

import contextlib
import hmac
import os
import secrets
import time
from pathlib import Path

from starlette.requests import Request

from segue.changes import settings
from segue.core.contracts.database import Clock
from segue.runtime.retrying import Patient

COOKIE = "segue"
_LINK = 600.0
"""Seconds that a sign-in link works."""


class SignIn:
    """Tells the host's own terminals and browsers from everybody else's."""

    def __init__(self, key: bytes, token: str, clock: Clock = time.monotonic) -> None:
        self._key = key
        self._token = token
        self._clock = clock
        self._links: dict[str, float] = {}

    @classmethod
    async def open(cls, store: Patient, folder: Path) -> "SignIn":
        """The sign-in of a data folder."""
        key = await store.write(settings.once, "page key", secrets.token_hex(32))
        return cls(bytes.fromhex(key), token_in(folder))

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
        browser = secrets.token_hex(8)
        return f"{browser}.{self._sign(browser)}"

    def browser(self, cookie: str) -> str | None:
        """The browser that a cookie was given to."""
        browser, _, signature = cookie.partition(".")
        return browser if browser and hmac.compare_digest(_bytes(signature), _bytes(self._sign(browser))) else None

    def is_terminal(self, authorization: str) -> bool:
        """Whether somebody shows the data folder's token."""
        return hmac.compare_digest(_bytes(authorization), _bytes(f"Bearer {self._token}"))

    def knows(self, request: Request) -> bool:
        """Whether a call is the host's own: from a terminal, or from a browser that signed in."""
        shown = request.headers.get("authorization", "")
        return self.is_terminal(shown) or self.browser(request.cookies.get(COOKIE, "")) is not None

    def _sign(self, browser: str) -> str:
        return hmac.digest(self._key, _bytes(browser), "sha256").hex()


def _bytes(text: str) -> bytes:
    """Whatever a header holds."""
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
