"""Commands for whoever keeps a gateway running."""
