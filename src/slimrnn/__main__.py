"""`python -m slimrnn` is the command `slimrnn`."""

import sys

from slimrnn.cli import main

if __name__ == "__main__":
    sys.exit(main())
