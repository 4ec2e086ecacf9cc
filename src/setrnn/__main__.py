"""`python -m setrnn`."""

from setrnn.cli import main

main()
