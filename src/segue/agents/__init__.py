"""Agents: they answer turns."""
