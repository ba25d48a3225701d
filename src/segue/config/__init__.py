"""What the host wrote in segue.toml, as values; every mistake is one line that names the key and the fix."""

from segue.config.accounts import Account
from segue.config.file import find
from segue.config.loading import Config, load

__all__ = ["Account", "Config", "find", "load"]
