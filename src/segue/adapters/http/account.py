"""An account of the HTTP adapter, as the host writes it in segue.toml."""

from segue.adapters.http.adapter import Http, HttpEdits, HttpOpens, HttpOpensAndEdits
from segue.adapters.shared.outcomes import check_http
from segue.core.contracts.adapters import Files
from segue.core.values import Secret, Value

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
        check_http("callback", self.callback, "http://127.0.0.1:9001/out")

    def adapter(self, account: str, files: Files) -> Http:
        """The adapter for this account, with the abilities that its platform has."""
        return _ABLE[self.opens_threads, self.edits](account, self.secret, self.callback, files)
