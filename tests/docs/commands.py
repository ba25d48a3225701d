"""The page of all commands, from their own table: `python -m tests.docs.commands > docs/commands.md`."""

import sys

from segue.core.commands import SPECS, Spec
from segue.core.people import Standing

HEADER = """\
# Commands

Commands for any chat, the terminal and the page. `/help` shows the same there, and `/help COMMAND`
its other names. A line that begins with two slashes is no command. Case doesn't matter.

Commands work while the agent answers: what only looks, and what moves you to another session, happens at once; what
changes the transcript (`/undo`, `/retry`, `/rewind`, `/compress`) takes its place in the queue. None of them
deletes anything but `/forget`, which asks first, and `/notes clear`.

| type | what it does | also | who may |
| --- | --- | --- | --- |
"""
FOOTER = """
*Anybody here* is everybody who may talk to the agent in that place; *owners* are whoever began the session, and the
host; *the host* is the one person who runs this Segue. What reaches only your own sessions (`/resume`, `/search`)
is for everybody.

`/rewind`, `/forget` and `/why` are replies to a message. Where a reply is a thread, as on Slack, they mean the message
that the thread hangs on.

Where others read along, `/status`, `/usage`, `/notes`, `/search`, `/tree`, `/why`, `/export`, `/revoke`, the lists of
`/resume`, `/sessions`, `/schedules` and `/questions`, the question who may read a session, and what `/answer` tells of
a question are for you alone: shown only to you where the platform can do that, else sent to your private chat with the
agent, and a line says so. If you have none there, lists show only what was said or scheduled in that place and no title
that was given elsewhere, a last line says when there is more, and `/usage`, `/notes`, `/export` and `/revoke` are for a
private chat. `/schedules cancel N` names what it cancels only where that was scheduled.

`/sessions close N` deletes nothing either: `/undo` or `/resume` opens it again.

`/undo` alone takes back whichever is newer: the last move of this place (`/new`, `/resume`, `/branch` ...) or the
last exchange, and says which. A reset that came by itself goes together with the message that caused it, which is
asked again in the session before; if others read that one by now, you are told so, and your message stays with you.

## Who reads what

A reader is a person or a place. Your private chats, terminals, pages and editors have one reader, you. Every other
place has one, too: everyone there, those who come later included. A place has read what was said in a session while it
spoke to that session, and what led there; Segue keeps that as a fact.

A move that would let a place read what it hasn't read asks the session's owner first, and says how much would be read:
`/yes` within five minutes. Such a move is `/resume` of a private session in a group, or of the group's own after you
went on with it in private. Bringing a session of your own to a private place of your own never asks. In a shared place
anybody may go back to a session that everyone there has read whole; any other is there for its owner alone. What was
asked elsewhere and still waits for its answer counts as unread. A place that the host named with `/home`, or as `home`
in segue.toml, needs no question, for the host's own sessions only. If you go on in private with what a group still
speaks to, you are told: everyone there reads it, and `/branch` goes on alone. Nobody, its owner and the host included,
goes back by `/rewind` or `/redo` to something that was taken back before others came to read along, as long as they do.

A private chat may become a group: a third person joins the room, or the platform says so. The place then starts afresh.
Its lanes are released from their sessions, and nothing that was said or brought there in private counts as read there.
An answer that was still on its way waits in its session. `/resume` brings the session back, after your `/yes`. The same
holds when somebody else begins to speak in a private chat: they get a new session.

`/link` gives you a code; typed as `/link CODE` in a private chat from another account, it asks there whether the two
are one person, and says by name and id whose sessions each would read and as whom each would speak. With the `/yes`
they are one, and the place where the code was asked for is told. To become one with the host takes the host's own
`/yes` there, too. A code works once and for ten minutes, and no more once it was typed where others could read it.
`/unlink` parts them again: each has what was theirs, also what they began meanwhile, what agents ask in their sessions
is asked of them, what either allowed for always meanwhile is asked again, and neither reads on in what was the other's.
A private chat that the platform named by two ids (a number and a UUID) and that isn't one is listed and parted the same
way; for groups the host has `segue lanes unlink`. What was parted stays so, whatever the platform tells again, until it
names an id that is new, or the host links them: `segue lanes link`. Work that somebody scheduled, and sessions that
agents start for them, ask each time whether they may still talk.

## Forgetting

`/forget` as a reply to a message takes its exchange for good: the question, the answer, tool calls with their results,
what was asked again or edited, summaries that stand for it, citations of it, what was sent of it, dead letters, files,
and the notes that agents made of it.
`/forget N` takes the exchange of entry N, as `/tree` numbers it; `/forget session` takes the session with the children
that it spawned, its titles and its scheduled work. It asks once and says what goes. Whoever wrote the message may, and
whoever owns the session. A turn that runs is stopped first.

A stone stays where something stood: when it was removed, and by whom. Branches keep their own entries over the stones.
Afterwards the words are in no row, index, log or free page of the database and in no file of the data folder; messages
of the agent are deleted where the platform lets it. The receipt lists what Segue can't reach: your own messages on a
platform, a provider's copy, an agent's own session, exports that were sent, backups. It also says where words of it
still stand because somebody or a model repeated them: these are yours to forget in turn. What was typed in terminals is
kept in one file without saying where it went: that file is emptied (retention leaves what was typed in the last day).

On PostgreSQL files are in the database, so a forget on any machine deletes them for all. No row and no index has the
words: the tables are vacuumed, the indexes of words built anew. Not in reach there, and named in the receipt: WAL
archives, standbys, free space in the database's files, which the server doesn't overwrite but uses again, and terminals
on other machines. As long as a query or a backup runs that began before, the
server keeps the rows for it: the receipt comes when that is over.

The host may have sessions forgotten by themselves, so many days after their last message: `[retention]` in segue.toml,
and `retention_days` in an account's table, which beats it. A session goes when every place where it was spoken to keeps
it no longer; never while a turn, a question, a child, a handoff or scheduled work of it is open. `/status` says it.
Only days in which a gateway ran count: a clock that is wrong at one start forgets nothing.

## Settings

    [lanes]
    quotes = "off"            # or "once", "switch": a reply to the agent goes to the session that wrote that message
    max_live_per_lane = 1000  # sessions that may be open at once among those begun in one place

In a private chat, a reply goes to another session only if nobody else reads that one.

This page is written by `python -m tests.docs.commands > docs/commands.md`, never by hand.
"""


def who(spec: Spec) -> str:
    """Who may type it, in the words of the page."""
    may = spec.may
    if Standing.STRANGER in may:
        return "everybody"
    if Standing.PARTICIPANT in may:
        return "anybody here"
    return "owners" if Standing.OWNER in may else "the host"


def page() -> str:
    """The page as it is to be."""
    rows = [
        f"| `{f'/{spec.name} {spec.usage}'.rstrip()}` | {spec.does} "
        f"| {', '.join(f'`/{alias}`' for alias in spec.aliases)} | {who(spec)} |\n"
        for spec in SPECS
    ]
    return HEADER + "".join(rows) + FOOTER


if __name__ == "__main__":
    sys.stdout.write(page())
