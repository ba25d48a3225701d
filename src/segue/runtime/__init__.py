"""The rooms where things happen at once: messages come in, turns run, answers go out."""
