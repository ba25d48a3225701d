"""The command line for hosts and scripts."""

from collections.abc import Callable
from importlib import import_module

import click
from click.shell_completion import CompletionItem


def completes(what: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return a completer from `service.completion`. That module is imported only when a shell completes."""

    def complete(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
        found: list[CompletionItem] = import_module("segue.cli.service.completion").complete(what, typed)
        return found

    return complete
