"""A secret shows itself to nobody who doesn't ask for it."""

import msgspec
import pytest

from segue.core.values import Secret

HIDDEN = "hunter2"


@pytest.mark.parametrize("show", [repr, str, "{}".format, lambda secret: str([{"key": secret}])])
def test_a_secret_is_revealed_only_on_purpose(show: type[str]) -> None:
    secret = Secret(HIDDEN)
    assert secret.reveal() == HIDDEN
    assert HIDDEN not in show(secret)


def test_secrets_compare_by_what_they_hide() -> None:
    assert Secret(HIDDEN) == Secret(HIDDEN)
    assert Secret(HIDDEN) != Secret("other")
    assert Secret(HIDDEN) != HIDDEN
    assert {Secret(HIDDEN): 1}[Secret(HIDDEN)] == 1


def test_a_secret_is_written_down_nowhere_by_accident() -> None:
    with pytest.raises(TypeError) as refused:
        msgspec.json.encode({"token": Secret(HIDDEN)})
    assert HIDDEN not in str(refused.value)
    with pytest.raises(TypeError):
        vars(Secret(HIDDEN))
