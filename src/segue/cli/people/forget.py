"""`segue people forget PERSON`: deletes a person's messages and data for good."""

import time

import click

from segue.changes.commands.request import counted
from segue.changes.forgetting import erasure
from segue.changes.forgetting.erasure import Cause, Reason
from segue.changes.people import register
from segue.changes.sessions import sessions
from segue.cli import completes
from segue.cli.host import config_here, file_store, opened
from segue.cli.output import awaited, printable
from segue.config import Fetch
from segue.core.settings import GatewaySettings
from segue.errors import SegueError
from segue.runtime.forgetting import Cleaner
from segue.runtime.lifecycle.failures import Failures
from segue.runtime.retrying import Patient

_MOST = 10_000


@click.command()
@click.argument("person", shell_complete=completes("people"))
@click.option("--yes", is_flag=True, help="Don't ask.")
@awaited
async def forget(person: str, *, yes: bool) -> None:
    """Delete a person's messages, sessions and name.

    This can't be undone. The command asks for confirmation.
    """
    config = config_here(Fetch.STORE)
    async with opened() as (store, host):
        found = await store.driver.read(register.find, person)
        own = await store.driver.read(sessions.owned, found, _MOST, None, 0.0)
        theirs = counted(len(own), "session", "sessions")
        words = f"This deletes {theirs} of {printable(person)}, and what they said in others'."
        if not yes:
            click.confirm(f"{words} Nothing brings it back. Go on?", abort=True)
        reason = Reason(host.id, Cause.HOST, time.time())
        taken = after = 0
        # The last pass begins anew, because the person may have talked meanwhile.
        while (step := await store.driver.read(erasure.next_of_person, found, after)) or after:
            if step:
                await store.driver.write(erasure.person_step, step, reason)
            taken, after = taken + bool(step), step.seq if step else 0
        await store.driver.write(erasure.person_end, found, reason)
        failures, files = Failures(), file_store(config, store)
        settings = GatewaySettings(data=str(config.data))
        cleaner = Cleaner(Patient(store.driver), {}, settings, time.time, failures, files=files)
        while await cleaner.once():
            """There is more to clean."""
        if failures.problems:
            raise SegueError(f"{' '.join(failures.problems)} A gateway tries again: `segue serve`.")
    gone = counted(taken, "session or exchange", "sessions and exchanges")
    click.echo(f"Forgotten: {gone}, their name, and dead letters of theirs.")
    left = "messages on platforms, providers' copies, agents' own sessions, exports that were sent"
    click.echo(f"Not in reach: {left}; {'; '.join(store.driver.copies)}.")
