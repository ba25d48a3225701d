"""Windows: terminals and pages that show a session live."""
