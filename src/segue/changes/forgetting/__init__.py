"""Forgetting: a person has words taken on purpose, and a stone stands where they were."""
