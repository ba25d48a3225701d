"""The heart: pure values and functions, without I/O, clock or randomness."""
