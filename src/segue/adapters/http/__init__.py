"""Any platform, in any language, behind two signed HTTP calls."""

from segue.adapters.http.account import HttpAccount
from segue.adapters.http.adapter import Http

__all__ = ["Http", "HttpAccount"]
