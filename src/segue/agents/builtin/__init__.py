"""The built-in agent, for trying Segue without a model."""
