"""The HTTP server: one application, its listeners and what they let in."""
