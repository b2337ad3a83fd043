"""`python -m controller`."""

from controller.cli.__main__ import entry

entry()
