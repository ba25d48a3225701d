"""Editors that speak the Agent Client Protocol (ACP): each conversation that one shows is a window of its person's."""
