"""Imports: histories from elsewhere."""
