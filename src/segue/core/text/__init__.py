"""Text: Markdown trees, splitting, graphemes, search words, normal forms."""
