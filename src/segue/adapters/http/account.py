"""An account of the HTTP adapter, as the host writes it in segue.toml."""

from segue.adapters.http.adapter import Http, HttpEdits, HttpOpens, HttpOpensAndEdits
from segue.adapters.http.signature import Signing, Version
from segue.adapters.shared.outcomes import check_http
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
    """The address that messages are sent to."""
    opens_threads: bool = False
    edits: bool = False
    """Replies grow while they are written."""
    old_secret: Secret | None = None
    """The secret before this one: calls that it signed still come in, until you take it out."""
    signatures: tuple[Version, ...] = ("v1",)
    """Signatures that calls carry both ways."""

    def __post_init__(self) -> None:
        if not self.signatures:
            raise Invalid("signatures", "none is named", 'Write ["v2"], ["v1"] or both.')
        check_http("callback", self.callback, "http://127.0.0.1:9001/out")

    @property
    def servers(self) -> dict[str, str]:
        """The callback."""
        return {"callback": self.callback}

    def adapter(self, account: str, files: Files) -> Http:
        """The adapter for this account, with the abilities that its platform has."""
        secrets = (self.secret, self.old_secret) if self.old_secret else (self.secret,)
        signing = Signing(secrets, account, self.signatures)
        return _ABLE[self.opens_threads, self.edits](account, signing, self.callback, files)
