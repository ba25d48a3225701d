"""Commands about people and the audit."""
