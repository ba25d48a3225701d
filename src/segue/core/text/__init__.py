"""Text: Markdown trees, splitting, graphemes, search words."""
