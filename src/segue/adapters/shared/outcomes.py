"""Outcomes: what became of a call, by how a platform answered it; and addresses of the web."""

from datetime import UTC
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from segue.core.values import Moment
from segue.errors import Invalid, SendLater, SendNever

_SUCCESS, _TOO_MANY, _SERVER_ERROR = 2, 429, 500


def taken(who: str, status: int, seconds: float | None = None) -> None:
    """Raise unless a platform took a call."""
    if status // 100 != _SUCCESS:
        raise refused(who, status, seconds)


def refused(who: str, status: int, seconds: float | None = None, why: str = "") -> SendLater | SendNever:
    """The outcome of a call that wasn't taken: later after 429 and 5xx, never after all else."""
    if status == _TOO_MANY or status >= _SERVER_ERROR:
        return SendLater(f"{who} answered {status}", seconds)
    return SendNever(f"{who} answered {status} {why}".rstrip())


def retry_after(header: str | None, now: Moment) -> float | None:
    """The seconds to wait that a Retry-After names: by their number, or as a date."""
    if header is None:
        return None
    if header.isascii() and header.isdigit():
        return float(header)
    try:
        when = parsedate_to_datetime(header)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, when.timestamp() - now)


def check_http(field: str, url: str, such_as: str) -> None:
    """Refuse a setting that isn't a whole http address; one with a name or a password in it isn't told again."""
    try:
        parts = urlsplit(url)
        whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        named = parts.username is not None
    except ValueError:
        whole = named = False
    if not whole:
        raise Invalid(field, f"{url!r} is not an http address", f'Write the whole address, such as "{such_as}".')
    if named:
        raise Invalid(field, "a name or password is in it", "Leave it out.")
