"""Notices: the lines that the gateway itself says in chats and to agents, made of values.

Law: a transaction tells what happened by values; their words are made here.
"""

from segue.core.lanes import Lane, Place
from segue.core.settings import AccountSettings

ELSEWHERE = "I answered in our private chat."
"""The line where a command was typed whose answer only its person gets."""
WELCOME = "Hello. Mention me or answer a message of mine to talk to me, or type /help."
KEPT = "It is done. Others read this session by now who didn't when it was asked: its result stays in its own session."
"""The result of a child for a parent whose readers aren't to have it."""
CLOSED = "It was closed before it finished its task."
"""The result of a child that was closed."""


def welcome(place: Place, lane: Lane, account: AccountSettings) -> str:
    """The line where somebody has just brought the agent: how to talk to it there, and who may."""
    address = place.address
    if account.public or not account.allow_groups.isdisjoint((address.chat, lane.address.chat)):
        return WELCOME
    table = f"[{address.platform}.{address.account}]"
    return f'{WELCOME} Others here are answered once allow_groups of {table} lists "{address.chat}".'


def pairing(code: str) -> str:
    """The line for a stranger whom the host may let in by a code."""
    return f"I only talk to people whom my host knows. Ask them to send me /link {code} within an hour."


def unknown(word: str, near: str) -> str:
    """The line about a command that nobody knows, and the one that was perhaps meant."""
    hint = f"Did you mean /{near}?" if near else "/help lists what there is."
    return f"There is no command /{word}. {hint} Two slashes at the start send it as text."


def answered_by(title: object) -> str:
    """The mark under an answer of a session that its place doesn't speak to: it has left it meanwhile, or never did."""
    return f"(This is from “{title}”.)" if title else "(This is from the session before.)"


def reset_taken_back(title: object, others: str) -> str:
    """The line after a reset was taken back; what was said since isn't for others who read the session before."""
    where = f"“{title}”" if title else "the session before"
    if others:
        return f"Took back the reset. You are in {where} again. {others} Your message wasn't asked again there."
    return f"Took back the reset. You are in {where} again, and your message is asked again there."


def schedule_ended(task: str) -> str:
    """The line about scheduled work that nobody may do any more."""
    return f"Scheduled work has ended, because its session was closed, or others read it by now: {task}"


def handed_off(place: str) -> str:
    """The line where a conversation was, once it has moved."""
    return f"This conversation goes on in {place}. /resume brings it back here."


def handoff_failed(place: str, how: str, *, stays: bool) -> str:
    """The line where a conversation is that was to move."""
    return f"The handoff to {place} {how}." + (" The conversation is still here." if stays else "")


def stayed(where: str) -> str:
    """The line where a conversation was to move, if something of it is to be seen there."""
    return f"This conversation didn't move here: it goes on in {where}."
