"""Other libraries for agents, the real ones, run the examples of docs/agents.md."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.servers import ROOT, libraries

_EXAMPLE = re.compile(r"^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PATIENCE = 120


def example(library: str) -> str:
    """The block of the page that shows a library."""
    page = (ROOT / "docs" / "agents.md").read_text()
    [block] = [block for block in _EXAMPLE.findall(page) if f"segue.agents.libraries.{library}" in block]
    return str(block)


@pytest.mark.parametrize("library", ["openai_agents", "langgraph"])
def test_a_turn_goes_through_a_library_and_one_that_is_tried_again_does_nothing_twice(
    library: str, tmp_path: Path
) -> None:
    shown = tmp_path / "bot.py"
    shown.write_text(example(library))
    script = Path(__file__).parent / "libraries" / f"{library}_turn.py"
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [libraries(), script, shown], env=env, check=False, capture_output=True, text=True, timeout=_PATIENCE
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    whole = [part.get("text") or part.get("content") or part["arguments"] for part in told["whole"]]
    assert whole == [{"one": 1, "two": 2}, "3", "It is 3."]
    assert [part["text"] for part in told["again"]] == ["It is 3."]
    assert (told["asked"], told["asked_again"], told["added"]) == (2, 1, [3])
    given = json.dumps(told["sent"])
    assert "my cat is Tom" in given
    assert "1 + 2?" in given
    assert "a cat" not in given, "what another provider's model thought"
