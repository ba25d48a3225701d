"""A Matrix account, as the host writes it in segue.toml."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta

from segue.adapters.matrix.adapter import Matrix
from segue.adapters.matrix.homeserver import Homeserver
from segue.adapters.matrix.incoming import Inviters
from segue.adapters.matrix.pace import Pace
from segue.core.contracts import Files
from segue.core.secret import Secret
from segue.core.values import Value
from segue.errors import Invalid

_USER = re.compile(r"@[^:\s]+:\S+")


class MatrixAccount(Value, frozen=True):
    """The keys of a table [matrix.ACCOUNT]."""

    homeserver: str
    """Where its client API is, such as "https://matrix.example.org"."""
    user: str
    """The bot's own id, such as "@segue:example.org"."""
    token: Secret
    """Its access token; `segue add matrix` gets one for a password."""
    inviters: tuple[str, ...] = ()
    """Who else may bring the bot into a room of several people; anybody may begin a private chat."""
    allow: tuple[str, ...] = ()
    """Who may talk to it in private may also invite it."""
    public: bool = False
    """Everybody may."""
    rate: Annotated[float, Meta(gt=0, le=1000)] = 0.2
    """Messages a second that the homeserver takes from one user for long; Synapse's own default."""
    burst: Annotated[int, Meta(ge=1, le=100_000)] = 10
    """Messages that it takes at once."""

    def __post_init__(self) -> None:
        if not _is_http(self.homeserver):
            fix = 'Write the whole address, such as "https://matrix.example.org".'
            raise Invalid("homeserver", f"{self.homeserver!r} is not an http address", fix)
        if not _USER.fullmatch(self.user):
            raise Invalid("user", f"{self.user!r} is not a user's id", 'Write it whole, such as "@segue:example.org".')

    def adapter(self, account: str, files: Files) -> Matrix:
        """The adapter for this account."""
        server = Homeserver(self.homeserver, self.user, self.token)
        inviters = Inviters.EVERYBODY if self.public else frozenset((*self.inviters, *self.allow))
        return Matrix(account, server, files, inviters, Pace(self.rate, self.burst))


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and not parts.username
    except ValueError:
        return False
