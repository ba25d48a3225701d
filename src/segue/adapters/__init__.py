"""One platform each: what speaks to the world outside."""
