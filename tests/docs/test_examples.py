"""The examples run, on either database, and so does every Python block of the documentation."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example: Path, database: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    where = str(tmp_path / "segue.db")
    if database == "postgres":
        where = request.getfixturevalue("postgres_dsn")
    done = subprocess.run([sys.executable, example, where], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=lambda path: path.name)
def test_the_python_on_a_page_runs(page: Path, tmp_path: Path) -> None:
    code = "\n".join(BLOCK.findall(page.read_text()))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_pins_that_pages_name_are_there() -> None:
    named = {name for page in PAGES for name in re.findall(r"requirements/([a-z]+\.txt)", page.read_text())}
    assert named
    assert {name for name in named if not (ROOT / "requirements" / name).is_file()} == set()
