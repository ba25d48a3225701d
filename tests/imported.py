"""All that a process of the tests may need, imported once in the server that forks them."""

import importlib
import pkgutil

import segue.cli
from segue.adapters.shared.trust import trust

for module in ("tests.drills.gateways", "tests.platforms.gateways"):
    importlib.import_module(module)
for found in pkgutil.walk_packages(segue.cli.__path__, "segue.cli."):
    importlib.import_module(found.name)
# Read before the fork, for all of them.
trust()
