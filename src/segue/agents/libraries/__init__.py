"""Turns of Segue in the forms of other libraries for agents, none of which has to be installed for it."""
