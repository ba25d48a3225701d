"""Imports of conversation histories from other programs."""
