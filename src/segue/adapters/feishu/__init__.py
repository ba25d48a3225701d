"""Feishu and Lark, by an app of the host's."""

from segue.adapters.feishu.account import FeishuAccount
from segue.adapters.feishu.adapter import Feishu
from segue.adapters.feishu.webhook import FeishuByEvents

__all__ = ["Feishu", "FeishuAccount", "FeishuByEvents"]
