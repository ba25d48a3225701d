"""Slack, by an app of the host's."""

from segue.adapters.slack.account import SlackAccount
from segue.adapters.slack.adapter import Slack, SlackByEvents

__all__ = ["Slack", "SlackAccount", "SlackByEvents"]
