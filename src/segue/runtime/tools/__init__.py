"""Tools, by which agents ask the gateway to do something: one table, one file for each thing that they are about."""

from segue.runtime.tools.table import BoundTools, Calling, Offer, Toolbox

__all__ = ["BoundTools", "Calling", "Offer", "Toolbox"]
