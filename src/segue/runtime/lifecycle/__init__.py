"""Lifecycle: loops that are restarted, items that are postponed, failures that are shown."""
