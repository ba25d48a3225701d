"""What runs on the thread of a test's event loop, where it would keep everybody else waiting."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def calls_on_this_thread(*functions: Callable[..., Any]) -> Iterator[list[str]]:
    """The names of those of these functions that are called on this thread meanwhile."""
    codes, calls = {function.__code__ for function in functions}, list[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in codes:
            calls.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(before)
