"""Conductor: one logical run as a durable workflow; resume, recover, stop.

The stages meet only here. Every effect is preceded by its intent in the journal, and every step first asks the journal
whether it was done: after a crash a run goes on where the evidence ends, adopts what is provably alive, accepts what is
provably done, and otherwise halts the cell and asks.
"""
