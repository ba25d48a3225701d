"""Each test of a database runs on both, with the fixtures of the changes."""

from tests.changes.conftest import *  # noqa: F403
