"""Files are kept whole, once, and only what was kept is read."""

import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from segue.core.contracts.files import FILES
from segue.core.messages import File
from segue.errors import Invalid, StoreFull
from segue.runtime.files.folder import Folder


async def chunks(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def kept(data: Path) -> list[Path]:
    return [path for path in (data / FILES).rglob("*") if path.is_file()]


async def test_a_file_comes_back_as_it_was_kept(tmp_path: Path) -> None:
    file = await Folder(tmp_path).keep("plan.txt", "text/plain", chunks(b"walk, ", b"then cake"))
    assert (file.name, file.media, file.size) == ("plan.txt", "text/plain", 15)
    assert await Folder(tmp_path).read(file) == b"walk, then cake"
    assert not Path(file.where).is_absolute()


async def test_the_same_content_is_one_file(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    one = await folder.keep("a.txt", "text/plain", chunks(b"same"))
    two = await folder.keep("b.txt", "text/plain", chunks(b"sa", b"me"))
    assert one.where == two.where
    assert len(kept(tmp_path)) == 1


async def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    file = await Folder(tmp_path).keep("a", "text/plain", chunks(b"secret"))
    assert not stat.S_IMODE((tmp_path / file.where).stat().st_mode) & 0o077
    assert not stat.S_IMODE((tmp_path / FILES).stat().st_mode) & 0o077


async def test_what_stops_midway_leaves_nothing(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionResetError

    with pytest.raises((ConnectionResetError, StoreFull)):
        await Folder(tmp_path).keep("a", "text/plain", broken())
    assert kept(tmp_path) == []


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a\nb\u202e", "", "x" * 500])
async def test_a_name_leads_nowhere(tmp_path: Path, name: str) -> None:
    file = await Folder(tmp_path).keep(name, "no media type at all", chunks(b"x"))
    assert file.name
    assert "/" not in file.name
    assert len(file.name) <= 64
    assert file.media == "application/octet-stream"
    assert (tmp_path / file.where).is_file()


@pytest.mark.parametrize("where", ["segue.db", "../secret", "/etc/passwd", "files/../segue.db", "files/ab/" + "0" * 64])
async def test_only_what_was_kept_is_read(tmp_path: Path, where: str) -> None:
    (tmp_path / "segue.db").write_bytes(b"everything")
    with pytest.raises(Invalid):
        await Folder(tmp_path).read(File("a", "text/plain", where))


async def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / FILES).write_text("not a folder")
    with pytest.raises(StoreFull, match="can't be kept"):
        await Folder(tmp_path).keep("a", "text/plain", chunks(b"x"))
