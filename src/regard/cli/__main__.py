"""python -m regard.cli is the command line."""

from regard.cli import main

if __name__ == "__main__":
    main()
