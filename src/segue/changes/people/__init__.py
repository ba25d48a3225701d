"""People: who somebody is, what they were granted, and the codes that let them in."""
