"""Agents that use a model."""
