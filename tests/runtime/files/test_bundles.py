"""Bundles: the bytes of files leave with their session and come back, or are refused by their line."""

import io
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segue.core.exports.jsonl import Line, Transcript, from_jsonl, to_jsonl
from segue.core.messages import File, Parts, Stone, Text
from segue.core.transcripts import AGENT
from segue.errors import Invalid
from segue.runtime.files.bundles import bundle, unbundle
from segue.runtime.files.folder import Folder

contents = st.lists(st.binary(max_size=50) | st.integers(48_000, 100_000).map(lambda n: b"\0{" * n), max_size=3)


async def chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def all_of(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


async def talk(folder: Folder, files: list[bytes]) -> Transcript:
    """An entry for each file, one that was forgotten, and a file that isn't kept here."""
    kept = [await folder.keep(f"{n}.bin", "image/png", chunks(content)) for n, content in enumerate(files)]
    parts: list[Parts] = [(Text("look"), file) for file in kept]
    parts += [(Stone(1.0, "p1"),), (File("a", "b/c", "mxc://far/away"),)]
    lines = [Line(n, n - 1 or None, AGENT, said, 1.0) for n, said in enumerate(parts, 1)]
    return Transcript(1.0, 2.0, tuple(lines), len(lines), session="s1")


@given(contents)
@settings(max_examples=15, deadline=None)
async def test_files_come_through_with_their_session(files: list[bytes]) -> None:
    with TemporaryDirectory() as here, TemporaryDirectory() as there:
        whole = await talk(Folder(Path(here)), files)
        written = await all_of(bundle(whole, Folder(Path(here))))
        text = await unbundle(io.BytesIO(written), Folder(Path(there)))
        assert from_jsonl(text) == whole == from_jsonl(written.decode())
        assert await all_of(bundle(from_jsonl(text), Folder(Path(there)))) == written
        for line, content in zip(whole.lines, files, strict=False):
            assert isinstance(file := line.parts[1], File)
            assert await Folder(Path(there)).read(file) == content


async def test_a_bundle_that_was_cut_off_or_changed_is_refused(tmp_path: Path) -> None:
    here = Folder(tmp_path / "here")
    written = (await all_of(bundle(await talk(here, [b"cow", b"x" * 100_000]), here))).splitlines(keepends=True)
    first = next(n for n, line in enumerate(written) if line.startswith(b'{"file"'))
    damaged = [written[:n] for n in range(first, len(written))]
    damaged += [[*written, written[-1]], [*written[:first], *written[first + 1 :]]]
    damaged += [[line.replace(b"Y293", b"Y294") for line in written]]
    for lines in damaged:
        with pytest.raises(Invalid, match=r"^line \d+: "):
            await unbundle(io.BytesIO(b"".join(lines)), Folder(tmp_path / "there"))
    assert not [*(tmp_path / "there").rglob("half-*")]


async def test_a_text_without_files_is_only_read(tmp_path: Path) -> None:
    text = to_jsonl(Transcript(1.0, 1.0, ()))
    assert await unbundle(io.BytesIO(text.encode()), Folder(tmp_path)) == text
    assert await unbundle(io.BytesIO(b"<!-- segue markdown 1"), Folder(tmp_path)) == "<!-- segue markdown 1"


async def test_a_large_file_is_never_whole_in_memory(tmp_path: Path) -> None:
    here, there = Folder(tmp_path / "here"), Folder(tmp_path / "there")
    whole = await talk(here, [bytes(20_000_000)])
    tracemalloc.start()
    with (tmp_path / "bundle").open("w+b") as file:
        async for piece in bundle(whole, here):
            file.write(piece)
        file.seek(0)
        await unbundle(file, there)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000
