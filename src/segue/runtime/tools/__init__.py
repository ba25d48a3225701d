"""What agents may ask the gateway to do: one table of tools, one file for each thing that they are about."""

from segue.runtime.tools.table import BoundTools, Calling, Offer, Toolbox

__all__ = ["BoundTools", "Calling", "Offer", "Toolbox"]
