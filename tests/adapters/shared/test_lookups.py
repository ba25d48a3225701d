"""Memory of what came last."""

from segue.adapters.shared.lookups import Recent


def test_what_was_set_last_is_remembered_longest() -> None:
    recent: Recent[str, int] = Recent(2)
    recent["one"], recent["two"] = 1, 2
    recent["one"] = 11
    recent["three"] = 3
    assert dict(recent) == {"one": 11, "three": 3}
    assert recent.get("two") is None
