"""Telemetry: logs, metrics and spans."""
