"""`python -m slimrnn` is the command `slimrnn`."""

from slimrnn.cli import main

main()
