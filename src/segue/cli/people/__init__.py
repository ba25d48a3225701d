"""Commands about people: who may talk, and what happened."""
