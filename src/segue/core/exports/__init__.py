"""Exports: a transcript as JSON lines, as Markdown, as a tree."""
