"""[agent] with kind = "model": every key, and where its files are looked for."""

from pathlib import Path

import pytest

from segue.agents.models.keys import ModelKeys, Prices, Thinking
from segue.agents.models.providers import ModelAgent
from segue.config import load
from segue.core.contracts.adapters import Closes
from segue.core.values import Secret
from segue.errors import Invalid

KEY = {"ACME_KEY": "sk-acme"}
MODEL = '[agent]\nkind = "model"\nmodel = "openai:small"\n'


def test_every_key_is_read(tmp_path: Path) -> None:
    (tmp_path / "bot.md").write_text("Be kind.\n")
    (tmp_path / "segue.toml").write_text(
        f"""{MODEL}
        base_url = "http://127.0.0.1:9/v1"
        api_key = "env:ACME_KEY"
        instructions_file = "bot.md"
        window = 32000
        retries = 5
        thinking = "low"
        max_tokens = 2000
        prices = {{ input = 1, output = 2.5, cache_read = 0.1 }}
        """
    )
    config = load(tmp_path / "segue.toml", KEY)
    assert config.agents[""] == ModelKeys(
        "openai:small",
        "http://127.0.0.1:9/v1",
        Secret("sk-acme"),
        instructions_file=tmp_path / "bot.md",
        window=32000,
        retries=5,
        thinking=Thinking.LOW,
        max_tokens=2000,
        prices=Prices(1, 2.5, 0.1),
    )
    assert config.agents[""].told() == "Be kind.\n"
    assert config.secrets == (Secret("sk-acme"),)


async def test_it_makes_an_agent_that_can_be_closed(tmp_path: Path) -> None:
    (tmp_path / "segue.toml").write_text(f'{MODEL}api_key = "env:ACME_KEY"')
    agent = load(tmp_path / "segue.toml", KEY).agents[""].agent()
    assert isinstance(agent, ModelAgent)
    assert isinstance(agent, Closes)
    await agent.close()


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("", 'agent.api_key: it is missing. Add it: api_key = "env:OPENAI_API_KEY"'),
        ('api_key = "sk-1"', "agent.api_key: the secret itself is in the file."),
        ('base_url = "http://x"\ninstructions_file = 3', "agent.instructions_file: it is not a path."),
        ('base_url = "http://x"\ninstructions_file = "nope.md"', "nope.md isn't there. Write it, or name another."),
        ('base_url = "http://x"\nthinking = "hard"', 'agent.thinking: "hard" is not a choice.'),
        ('base_url = "http://x"\nprices = { input = 1 }', "agent.prices.output: it is missing."),
        ('base_url = "http://x"\nwindows = 3', "agent.windows: there is no such key. Did you mean window?"),
    ],
)
def test_a_mistake_names_its_key(tmp_path: Path, lines: str, problem: str) -> None:
    (tmp_path / "segue.toml").write_text(MODEL + lines)
    with pytest.raises(Invalid) as caught:
        load(tmp_path / "segue.toml", KEY)
    assert problem in str(caught.value)
