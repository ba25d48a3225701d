"""The command line: what a host and a script type."""

from collections.abc import Callable
from importlib import import_module

import click
from click.shell_completion import CompletionItem


def completes(what: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Completion of a word, by a name in `service.completion`, which nothing but a shell that completes imports."""

    def complete(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
        found: list[CompletionItem] = import_module("segue.cli.service.completion").complete(what, typed)
        return found

    return complete
