"""Adapters: one package for each platform."""
