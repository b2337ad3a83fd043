"""Interfaces to the world. Adapters implement them; `tests/world` has fakes that pass the same contract suites."""
