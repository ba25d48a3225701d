"""Limits: what agents may spend."""
