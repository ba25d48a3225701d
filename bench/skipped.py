"""What can't be measured here is said aloud."""


class Skipped(Exception):
    """A row that can't be measured here, and why."""
