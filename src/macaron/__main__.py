"""`python -m macaron`."""

from macaron.cli import main

main()
