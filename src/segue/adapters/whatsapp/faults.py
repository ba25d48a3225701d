"""Errors of the Cloud API: what each means for the message that it is about."""

from segue.adapters.whatsapp.payloads import Fault
from segue.core.messages import SendStatus
from segue.errors import SendError, SendLater, SendNever, SendUnsure

_PATIENCE = {4: 60.0, 80007: 60.0, 130429: 10.0, 131048: 3600.0, 131056: 12.0, 133016: 3600.0}
"""Codes of too many calls or messages, with the seconds to wait."""
_TOKEN = frozenset({0, 3, 10, 190, *range(200, 300)})
"""Codes of a token that doesn't hold, or may not: once the host has given another, the message can go out."""
_BROKEN = frozenset({1, 2, 131000, 131016, 131057})
"""Codes of something that is broken at WhatsApp; nobody knows whether a message was taken."""
_WORDS = {
    131026: "WhatsApp can't deliver it: they may not have WhatsApp, or an old one.",
    131030: "A test number writes only to the numbers that its app lists. Add theirs under API Setup.",
    131042: "WhatsApp wants to be paid: the free messages are used up, and the business has no payment method.",
    131047: "WhatsApp lets an account answer for 24 hours after somebody last wrote. They must write first.",
}


def outcome(fault: Fault, status: int) -> SendError:
    """The outcome of a call that was answered with an error."""
    said = f"WhatsApp: {fault.words}"
    if fault.code in _PATIENCE:
        return SendLater(said, _PATIENCE[fault.code])
    if fault.code in _TOKEN and fault.code:
        return SendLater(f"WhatsApp doesn't take the token ({fault.words}).")
    if fault.code in _BROKEN or status >= 500:
        return SendUnsure(said)
    return SendNever(_WORDS.get(fault.code, said))


def status_of(fault: Fault | None) -> tuple[SendStatus, str]:
    """What became of a message that WhatsApp took and couldn't send."""
    if fault is None:
        return SendStatus.NEVER, "WhatsApp couldn't send it, and doesn't say why."
    later = fault.code in _PATIENCE or fault.code in _BROKEN
    return SendStatus.LATER if later else SendStatus.NEVER, _WORDS.get(fault.code, f"WhatsApp: {fault.words}")
