"""The gateway's tools over MCP; the extra `mcp` is imported here alone."""
