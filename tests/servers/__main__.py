"""Installs the providers' servers into the cache; what can't be had is named, and its tests will be skipped."""

from __future__ import annotations

import sys

from tests.servers import install

for missing in install():
    sys.stderr.write(f"can't be had here, its tests will be skipped: {missing}\n")
