"""Finding whoever is adding an account: they write to it, and say that it was they."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from functools import partial

import click

from segue.cli.codes import qr
from segue.cli.showing import printable
from segue.core.adding import MeetsPeople, Met
from segue.errors import SegueError
from segue.runtime.cancelling import surely


def meet(keys: type[MeetsPeople], answers: Mapping[str, str], link: str, wait: int) -> Met:
    """Wait until somebody writes who says that it was they; raises `SegueError` when nobody does."""
    after = ""
    try:
        click.echo(f"Now open {link} and press Start, or write something there.")
        if sys.stdout.isatty():
            click.echo(qr(link))
        click.echo("Waiting for you there. Ctrl-C ends it.")
        while True:
            met = asyncio.run(_met(keys, answers, after, wait))
            if click.confirm(f"{printable(met.name)} wrote. Is this you?"):
                return met
            click.echo("Then somebody else found it first. Waiting for you there.")
            after = met.cursor
    except TimeoutError as error:
        raise SegueError(f"Nobody wrote there for {wait} seconds. {_ELSE}") from error
    except (KeyboardInterrupt, click.Abort) as error:
        click.echo()
        raise SegueError(_ELSE) from error


_ELSE = "Nothing was written. Run it again, or name your own user id there: --owner ID."


async def _met(keys: type[MeetsPeople], answers: Mapping[str, str], after: str, wait: int) -> Met:
    async with asyncio.timeout(wait):
        return await surely(partial(keys.meet, answers, after))
