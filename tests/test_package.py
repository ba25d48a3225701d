import subprocess
import sys

import pytest

import segue

HEAVY = {"apsw", "asyncio", "asyncpg", "httpx2", "msgspec", "prometheus_client", "starlette", "uvicorn"}


def test_every_name_is_there() -> None:
    assert [name for name in segue.__all__ if getattr(segue, name, None) is None or name not in dir(segue)] == []


def test_names_are_sorted_and_others_are_not_there() -> None:
    assert segue.__all__ == sorted(segue.__all__)
    with pytest.raises(AttributeError, match="Nope"):
        _ = segue.Nope  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "code",
    [
        "import segue",
        "from segue.cli.main import main\nmain(['--help'], standalone_mode=False)",
    ],
    ids=["import", "help"],
)
def test_nothing_heavy_is_imported_before_it_is_needed(code: str) -> None:
    shown = f"{code}\nimport sys\nprint(sorted(sys.modules.keys() & {HEAVY}))"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
