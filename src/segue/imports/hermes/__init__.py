"""Brings a Hermes home into the store: its sessions, what was said in them, and the lanes that they were on."""

from segue.imports.hermes.importing import Fate, Mode, Report, import_hermes

__all__ = ["Fate", "Mode", "Report", "import_hermes"]
