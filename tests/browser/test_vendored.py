"""What others wrote of the page is what they released, and their licences are with it."""

import hashlib
from importlib.resources import files

PAGE = files("segue").joinpath("page")


def test_the_libraries_are_unchanged() -> None:
    listed = [line.split() for line in PAGE.joinpath("vendored.sha256").read_text().splitlines()]
    for digest, name in listed:
        assert hashlib.sha256(PAGE.joinpath(name).read_bytes()).hexdigest() == digest, name
    licences = PAGE.joinpath("LICENSES.txt").read_text()
    assert [name for _, name in listed if name not in licences] == []
