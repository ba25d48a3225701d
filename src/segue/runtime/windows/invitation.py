"""The words of an invitation to take the conversation along."""

from segue.runtime.windows.frames import InvitationFrame

WARNING = "Whoever uses that becomes you, within ten minutes: show it to nobody."


def typed(shown: InvitationFrame) -> list[str]:
    """The way to take the conversation along where no link does it."""
    places = ", ".join(shown.typed)
    return [f"Or send /link {shown.code} to me in a private chat on {places}."] if places else []


def invitation(shown: InvitationFrame) -> str:
    """The way to take the conversation along, in plain lines."""
    links = [f"Open {link}: the conversation comes to {place}." for place, link in shown.links.items()]
    return "\n".join([*links, *typed(shown), WARNING])
