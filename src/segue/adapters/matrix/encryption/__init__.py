"""Encrypted rooms: all that needs the libraries of an extra, which are imported once an account is to encrypt."""
