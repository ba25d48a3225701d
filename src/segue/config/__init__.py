"""The settings of segue.toml as values.

Every mistake is one line that names the key and the fix.
"""

from segue.config.accounts import AccountTable
from segue.config.file import data_folder, find
from segue.config.loading import Config, default, load, mistakes
from segue.config.references import Fetch
from segue.config.trust import Untrusted, trust

__all__ = [
    "AccountTable",
    "Config",
    "Fetch",
    "Untrusted",
    "data_folder",
    "default",
    "find",
    "load",
    "mistakes",
    "trust",
]
