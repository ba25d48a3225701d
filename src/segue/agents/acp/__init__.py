"""Agents that speak the Agent Client Protocol (ACP), each a process of its own."""
