"""Outcomes of calls by HTTP status, and checks of web addresses."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TypeVar
from urllib.parse import urlsplit

from segue.core.contracts.adapters import Closes
from segue.core.messages import Sending
from segue.core.values import Moment
from segue.errors import Disconnected, Invalid, SendError, SendLater, SendNever, SendUnsure

C = TypeVar("C", bound=Closes)
_TOO_MANY, _SERVER_ERROR = 429, 500


def refused(
    who: str, status: int, seconds: float | None = None, why: str = "", sending: Sending = Sending.KEYED
) -> SendError:
    """Return the error for a rejected call: `SendLater` after 429 and 5xx, `SendNever` otherwise.

    After 5xx, a call is retried if it has a key or the platform names a time to wait. Any other call is `SendUnsure`,
    because the platform may have accepted it.
    """
    said = f"{who} answered {status} {why}".rstrip()
    if status == _TOO_MANY or (status >= _SERVER_ERROR and (seconds is not None or sending is Sending.KEYED)):
        return SendLater(said, seconds)
    return SendUnsure(said) if status >= _SERVER_ERROR else SendNever(said)


@contextmanager
def connecting() -> Iterator[None]:
    """End the connection when a call inside this block fails, with the call's error text."""
    try:
        yield
    except SendError as error:
        raise Disconnected(str(error)) from error


@asynccontextmanager
async def calling(api: C) -> AsyncIterator[C]:
    """Close an API after a few calls; raise `Disconnected` if one fails."""
    try:
        with connecting():
            yield api
    finally:
        await api.close()


def retry_after(header: str | None, now: Moment) -> float | None:
    """Return the seconds in a Retry-After header, which holds a number or a date."""
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
    """Refuse a setting that isn't a complete http address.

    An address with a name or password is refused too, and not quoted.
    """
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
