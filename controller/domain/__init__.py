"""Nouns: frozen records, typed ids, money, limits and state tables. No I/O, no clock, no chance."""
