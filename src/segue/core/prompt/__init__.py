"""The prompt: what an agent is told, and how people's words reach it."""
