"""Evidence: bytes that prove what they claim, and the check that a stranger runs.

Input: frozen records and a signer. Output: canonical bytes, envelopes, a Merkle log, a signed bundle, a check report.
Invariants: one value has one spelling (RFC 8785, no floats, no duplicate keys, canonical base64); nothing here reads a
disk, a clock or the network; a check names the step that failed, and silence is failure.
"""
