"""Contracts between the rooms: the fewest verbs, as Protocols."""
