"""Matrix: one user of a homeserver, by its client API."""

from segue.adapters.matrix.account import MatrixAccount
from segue.adapters.matrix.adapter import Matrix

__all__ = ["Matrix", "MatrixAccount"]
