"""python -m regard.cli is the command line."""

from regard.cli import main

main()
