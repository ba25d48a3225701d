"""What a model costs, where the host says so."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from segue.core.contracts import Usage
from segue.core.values import Value

Dollars = Annotated[float, Meta(ge=0, le=1_000_000)]


class Prices(Value, frozen=True):
    """US dollars per million tokens; cached input costs as much as other input unless that is said."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None

    def cost(self, usage: Usage) -> float:
        """What a request cost."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        plain = usage.input - usage.cache_read - usage.cache_write
        spent = plain * self.input + usage.cache_read * read + usage.cache_write * write + usage.output * self.output
        return spent / 1_000_000
