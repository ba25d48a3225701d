"""Feishu and Lark, by an app of the host's."""

from segue.adapters.feishu.account import FeishuAccount
from segue.adapters.feishu.adapter import Feishu, FeishuByEvents

__all__ = ["Feishu", "FeishuAccount", "FeishuByEvents"]
