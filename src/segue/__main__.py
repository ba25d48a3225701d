"""Makes `python -m segue` the same as `segue`."""

from segue.cli.main import main

main()
