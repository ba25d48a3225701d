"""For authors of adapters and agents: fakes that really work, and the contracts that both must keep."""
