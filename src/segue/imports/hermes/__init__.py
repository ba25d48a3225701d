"""Brings a Hermes home into the store: its sessions, what was said in them, and the lanes that they were on."""

from segue.imports.hermes.importing import Report, import_hermes

__all__ = ["Report", "import_hermes"]
