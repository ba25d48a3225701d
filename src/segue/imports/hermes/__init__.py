"""Imports a Hermes home into the store: sessions, transcripts and lanes."""

from segue.imports.hermes.importing import Fate, Mode, Report, import_hermes

__all__ = ["Fate", "Mode", "Report", "import_hermes"]
