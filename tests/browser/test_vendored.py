"""What others wrote of the page is what they released, and their licences are with it."""

import hashlib
from importlib.resources import files

VENDORED = files("segue").joinpath("page", "vendored")


def test_the_libraries_are_unchanged() -> None:
    listed = [line.split() for line in VENDORED.joinpath("sha256").read_text().splitlines()]
    for digest, name in listed:
        assert hashlib.sha256(VENDORED.joinpath(name).read_bytes()).hexdigest() == digest, name
    licences = VENDORED.joinpath("LICENSES.txt").read_text()
    assert [name for _, name in listed if name not in licences] == []
