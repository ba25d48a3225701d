"""The command line: what a host and a script type."""
