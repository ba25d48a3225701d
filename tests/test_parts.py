"""Each part that tests need is here; in continuous integration a missing one fails under its name."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench import taps
from bench.databases import Databases
from bench.scale import QUICK
from bench.skipped import Skipped
from tests import parts, servers
from tests.parts import Part

_FIND: dict[Part, Callable[[pytest.FixtureRequest], object]] = {
    Part.POSTGRESQL: lambda request: request.getfixturevalue("postgres"),
    Part.NODE: lambda _: servers.node(),
    Part.CHROMIUM: lambda _: parts.chromium(),
    Part.NGINX: lambda _: parts.nginx(),
    Part.BASH: lambda _: parts.program(Part.BASH),
    Part.ZSH: lambda _: parts.program(Part.ZSH),
    Part.FISH: lambda _: parts.program(Part.FISH),
    Part.CRABLINE: lambda _: servers.modules(),
    Part.LOCAL_SLACK: lambda _: servers.local_slack(),
    Part.BAILEYS: lambda _: servers.linked_devices(),
    Part.SYNAPSE: lambda _: servers.synapse(),
    Part.MAUTRIX: lambda _: servers.mautrix(),
    Part.LIBRARIES: lambda _: servers.libraries(),
    Part.HARNESSES: lambda _: servers.harnesses(),
    Part.OPENCODE: lambda _: servers.opencode(),
    Part.ACP_EXAMPLES: lambda _: servers.acp_examples(),
}


@pytest.mark.parametrize("part", Part, ids=lambda part: part.value)
def test_it_is_here(part: Part, request: pytest.FixtureRequest) -> None:
    try:
        _FIND[part](request)
    except pytest.skip.Exception as missing:
        why = str(missing)
    else:
        return
    # What lies in another part fails under the name of that.
    if parts.is_wanted(part) and why.startswith(f"without {part.value}:"):
        pytest.fail(f"{why}. If this machine can't have it, name it: SEGUE_WITHOUT={part.value}", pytrace=False)
    pytest.skip(why)


@pytest.mark.parametrize(
    "environ", [{}, {"CI": "false"}, {"CI": "true", "SEGUE_WITHOUT": "zsh, nginx"}], ids=["none", "no CI", "named"]
)
def test_a_missing_part_is_no_failure(environ: dict[str, str]) -> None:
    assert not parts.is_wanted(Part.NGINX, environ)


@pytest.mark.parametrize("environ", [{"CI": "true"}, {"CI": "1", "SEGUE_WITHOUT": "zsh"}], ids=["CI", "another named"])
def test_a_missing_part_is_a_failure(environ: dict[str, str]) -> None:
    assert parts.is_wanted(Part.NGINX, environ)


def test_a_part_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match=r"SEGUE_WITHOUT: there is no part 'chrome'\. The parts are postgresql, "):
        parts.left_out({"SEGUE_WITHOUT": "chrome"})


async def test_a_row_of_the_bench_whose_part_is_missing_is_left_out_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SEGUE_WITHOUT", "crabline")
    with pytest.raises(Skipped, match="without crabline"):
        await anext(taps.tap(Databases(tmp_path, QUICK, print)))
