"""Slack, by an app of the host's."""

from segue.adapters.slack.account import SlackAccount
from segue.adapters.slack.adapter import Slack
from segue.adapters.slack.webhook import SlackByEvents

__all__ = ["Slack", "SlackAccount", "SlackByEvents"]
