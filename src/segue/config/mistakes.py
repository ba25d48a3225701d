"""Every mistake in a file, for whoever would rather not find them one by one."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from segue.config.file import read_file
from segue.config.loading import SECTIONS, from_tables
from segue.errors import Invalid


def mistakes(file: Path, environ: Mapping[str, str]) -> list[Invalid]:
    """The first mistake in each table of a file; none if the file loads."""
    try:
        said = read_file(file)
    except Invalid as error:
        return [error]
    whole = _mistake(said, file, environ)
    if whole is None:
        return []
    parts = (_mistake(part, file, environ) for part in _parts(said))
    # A mistake may lie between two tables that are right by themselves.
    return [error for error in parts if error is not None] or [whole]


def _mistake(said: Mapping[str, Any], file: Path, environ: Mapping[str, str]) -> Invalid | None:
    try:
        from_tables(said, file.absolute(), environ)
    except Invalid as error:
        return error
    return None


def _parts(said: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What can be right or wrong by itself: a section, or an account with those owners who are known there."""
    owners = said.get("owners")
    owners = [str(owner) for owner in owners] if isinstance(owners, list) else []
    for key, table in said.items():
        if key == "owners":
            continue
        if key in SECTIONS or not isinstance(table, Mapping):
            yield {key: table}
            continue
        for name, account in table.items():
            known = [owner for owner in owners if owner.startswith(f"{key}.{name}/")]
            yield {key: {name: account}, "owners": known}
