"""Turns: sessions are claimed, agents answer, and what they said is written."""
