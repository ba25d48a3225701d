"""An account of the HTTP adapter, as the host writes it in segue.toml."""

from urllib.parse import urlsplit

from segue.adapters.http.adapter import Http, HttpEdits, HttpOpens, HttpOpensAndEdits
from segue.core.contracts.adapters import Files
from segue.core.values import Secret, Value
from segue.errors import Invalid

_ABLE = {
    (False, False): Http,
    (True, False): HttpOpens,
    (False, True): HttpEdits,
    (True, True): HttpOpensAndEdits,
}
"""By opens_threads and edits."""


class HttpAccount(Value, frozen=True):
    """The keys of a table [http.ACCOUNT]."""

    secret: Secret
    """Signs the calls both ways."""
    callback: str
    """Where messages are sent to."""
    opens_threads: bool = False
    edits: bool = False
    """Replies grow while they are written."""

    def __post_init__(self) -> None:
        if not _is_http(self.callback):
            fix = 'Write the whole address, such as "http://127.0.0.1:9001/out".'
            raise Invalid("callback", f"{self.callback!r} is not an http address", fix)
        if urlsplit(self.callback).username is not None:
            raise Invalid("callback", "a name or password is in it", "Leave it out: calls are signed with the secret.")

    def adapter(self, account: str, files: Files) -> Http:
        """The adapter for this account, with the abilities that its platform has."""
        return _ABLE[self.opens_threads, self.edits](account, self.secret, self.callback, files)


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
