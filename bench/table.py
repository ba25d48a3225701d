"""The table: what was measured, beside what, and whether it is where we want it to be."""

import os
import platform
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import apsw

_HEAD = ("row", "what", "Segue", "beside it", "ratio", "target", "met")
_WIDTHS = (9, 52, 15, 34, 7, 9, 3)


@dataclass(frozen=True)
class Target:
    """Where we want to be: a figure and whether it may be lower or must not be."""

    sign: str
    figure: float
    unit: str = ""

    def met(self, value: float) -> bool:
        return {"<": value < self.figure, "<=": value <= self.figure, ">=": value >= self.figure}[self.sign]

    def __str__(self) -> str:
        return f"{self.sign} {self.figure:g}{self.unit and ' '}{self.unit}"


@dataclass(frozen=True)
class Line:
    """One figure of Segue's beside another's."""

    row: str
    what: str
    segue: str
    beside: str = ""
    ratio: float | None = None
    """Segue's figure over the other's."""
    target: Target | None = None
    value: float | None = None
    """What the target is about, if it isn't the ratio."""

    def cells(self) -> tuple[str, ...]:
        measured = self.ratio if self.value is None else self.value
        met = "" if self.target is None or measured is None else "yes" if self.target.met(measured) else "no"
        return (
            self.row,
            self.what,
            self.segue,
            self.beside,
            "" if self.ratio is None else f"{self.ratio:.2f}",
            "" if self.target is None else str(self.target),
            met,
        )


def head() -> str:
    return _aligned(_HEAD)


def shown(line: Line) -> str:
    return _aligned(line.cells())


def markdown(lines: list[Line], notes: list[str], about: str) -> str:
    """The whole table as a page."""
    rows = [_HEAD, tuple("---" for _ in _HEAD), *(line.cells() for line in lines)]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
    return "\n\n".join([about, table, *(f"- {note}" for note in notes)]) + "\n"


def machine(folder: Path) -> str:
    """What this ran on."""
    return (
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"SQLite {apsw.sqlite_lib_version()}, files in {_file_system(folder)}"
    )


def condition(folder: Path) -> str:
    """How busy the machine and its disk are with other things."""
    taken = []
    with (folder / "synced").open("wb") as file:
        for _ in range(50):
            began = time.perf_counter()
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - began)
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, an fsync takes {_short(statistics.median(taken))}"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.3f} ms" if seconds < 0.1 else f"{seconds * 1000:.0f} ms"


def _short(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def per_second(rate: float) -> str:
    return f"{rate:,.0f}/s"


def _aligned(cells: tuple[str, ...]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=True)).rstrip()


def _file_system(folder: Path) -> str:
    """The kind of file system that holds a folder: where it is memory nothing is durable, and no ratio means much."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "an unknown file system"
    found = [line.split()[1:3] for line in mounts.read_text().splitlines()]
    holding = [(Path(at), kind) for at, kind in found if folder.resolve().is_relative_to(at)]
    return max(holding, key=lambda mount: len(mount[0].parts))[1]
