"""Counts how often something failed that may yet come, so that nobody waits for it for ever."""

from segue.errors import SendError, SendLater

_TRIES = 3
_REMEMBERED = 1000


class Tries:
    """Failures, by what failed."""

    def __init__(self) -> None:
        self._failed: dict[str, int] = {}

    def lasts(self, what: str, error: SendError) -> bool:
        """Count one more failure; whether it is to be lived with. A platform that asks for patience hasn't failed."""
        return not (isinstance(error, SendLater) and error.seconds is not None) and self.over(what)

    def over(self, what: str) -> bool:
        """Count one more failure; whether it has failed too often to be waited for."""
        # What failed last is remembered longest.
        self._failed[what] = self._failed.pop(what, 0) + 1
        if len(self._failed) > _REMEMBERED:
            del self._failed[next(iter(self._failed))]
        return self._failed[what] >= _TRIES


BEGINNING = 1000
"""Characters of a message that are shown with an answer to it."""
