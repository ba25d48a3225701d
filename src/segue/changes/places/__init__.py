"""Places: addresses, lanes, homes and windows."""
