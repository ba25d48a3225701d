"""Agents, which answer turns."""
