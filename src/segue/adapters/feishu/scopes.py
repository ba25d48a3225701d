"""The scopes that the app needs, and those that it lacks."""

from segue.adapters.feishu.api import Api
from segue.errors import SendNever

NEEDED = (
    ("im:message:send_as_bot", "im:message"),
    ("im:message.p2p_msg:readonly", "im:message.p2p_msg"),
    ("im:message.group_at_msg:readonly", "im:message.group_at_msg", "im:message.group_msg"),
    ("im:message:readonly", "im:message"),
    ("im:message:update", "im:message"),
    ("im:message:recall", "im:message"),
    ("im:resource", "im:resource:upload"),
    ("im:chat:readonly", "im:chat", "im:chat:read"),
    ("contact:user.base:readonly", "contact:contact.base:readonly"),
    ("cardkit:card:write",),
    ("cardkit:card:read",),
)
"""Each by its name, and the others that hold it."""
_GRANTED = 1


async def missing(api: Api) -> str:
    """A sentence that names the scopes which the app hasn't; empty if it has all, or Feishu doesn't say."""
    try:
        listed = (await api.call("GET", "/application/v6/scopes")).get("scopes")
    except SendNever:
        return ""
    if not isinstance(listed, list):
        return ""
    has = {one.get("scope_name") for one in listed if isinstance(one, dict) and one.get("grant_status") == _GRANTED}
    lacks = [names[0] for names in NEEDED if not has.intersection(names)]
    where = f"{api.base}/app/{api.app}/auth?q={','.join(lacks)}"
    return f"It has no scope {', '.join(lacks)}: grant it at {where}, and publish a version." if lacks else ""
