"""The built-in agent: what a newcomer tries first."""
