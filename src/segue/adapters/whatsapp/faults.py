"""Errors of the Cloud API: what each means for the message that it is about."""

from collections.abc import Mapping

from segue.core.messages import SendStatus
from segue.core.values import Plain, Value
from segue.errors import SendError, SendLater, SendNever, SendUnsure

_PATIENCE = {4: 60.0, 80007: 60.0, 130429: 10.0, 131048: 3600.0, 131056: 12.0, 133016: 3600.0}
"""Codes of too many calls or messages, with the seconds to wait."""
_TOKEN = frozenset({3, 10, 190, *range(200, 300)})
"""Codes of a token that doesn't hold, or may not: once the host has given another, the message can go out."""
_BROKEN = frozenset({1, 2, 131000, 131016, 131057})
"""Codes of something that is broken at WhatsApp; nobody knows whether a message was taken."""
_WORDS = {
    131026: "WhatsApp can't deliver it: they may not have WhatsApp, or an old one.",
    131030: "A test number writes only to the numbers that its app lists. Add theirs under API Setup.",
    131042: "WhatsApp wants to be paid: the free messages are used up, and the business has no payment method.",
    131047: "WhatsApp lets an account answer for 24 hours after somebody last wrote. They must write first.",
}


class Fault(Value, frozen=True):
    """A reason why something wasn't done."""

    code: int = 0
    title: str = ""
    message: str = ""
    error_data: Mapping[str, Plain] = {}

    @property
    def words(self) -> str:
        """The reason, as WhatsApp words it."""
        return str(self.error_data.get("details") or self.message or self.title or f"error {self.code}")

    @property
    def why(self) -> str:
        """The reason, in words fit for people."""
        return _WORDS.get(self.code, f"WhatsApp: {self.words}")

    def outcome(self, status: int) -> SendError:
        """The outcome of a call that was answered with it."""
        if self.code in _PATIENCE:
            return SendLater(self.why, _PATIENCE[self.code])
        if self.code in _TOKEN:
            return SendLater(f"WhatsApp doesn't take the token ({self.words}).")
        return SendUnsure(self.why) if self.code in _BROKEN or status >= 500 else SendNever(self.why)

    @property
    def fate(self) -> SendStatus:
        """What became of a message that WhatsApp took and couldn't send."""
        return SendStatus.LATER if self.code in _PATIENCE or self.code in _BROKEN else SendStatus.NEVER
