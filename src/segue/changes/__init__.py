"""Changes: every state change and every read, as one short transaction. Begin at accept.py."""
