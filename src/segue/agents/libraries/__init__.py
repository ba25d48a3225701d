"""Segue's turns in the forms of other agent libraries. Nothing here imports those libraries."""
