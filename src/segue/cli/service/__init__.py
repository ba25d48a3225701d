"""Commands for operating a gateway."""
