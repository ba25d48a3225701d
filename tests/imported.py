"""All that a process of the tests may need, imported once in the server that forks them."""

import gc
import importlib
import pkgutil

import segue.cli
from segue.adapters.shared.trust import trust
from segue.database.shapes import difference
from segue.database.statements import POSTGRES, SQLITE, compile_for, migrations, newest_version

for module in ("segue.adapters.matrix.encryption.device", "tests.drills.gateways", "tests.platforms.gateways"):
    importlib.import_module(module)
for found in pkgutil.walk_packages(segue.cli.__path__, "segue.cli."):
    importlib.import_module(found.name)
# Read before the fork, for all of them.
trust()
for dialect in (SQLITE, POSTGRES):
    compile_for(dialect)
    migrations(dialect)
difference(newest_version(), {}, migrations(SQLITE))
# None of it goes away again: whoever is forked shares it, and their collectors of cycles needn't look through it.
gc.collect()
gc.freeze()
