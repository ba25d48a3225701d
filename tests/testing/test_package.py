"""What `segue.testing` offers, and what it needs."""

import subprocess
import sys

import segue.testing
from segue.testing import contracts


def test_only_the_contracts_need_pytest() -> None:
    program = "import sys, segue.testing; sys.exit('pytest' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_its_names_are_in_order_and_there() -> None:
    for package in (segue.testing, contracts):
        assert (
            sorted(package.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name)) == package.__all__
        )
        assert all(hasattr(package, name) for name in package.__all__)
