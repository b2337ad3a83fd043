"""The one way in which a step says no."""

from __future__ import annotations


class Refused(Exception):
    """What is wrong with the bundle. The text is shown to the reader beside the number of the step."""
