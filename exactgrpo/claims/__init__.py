"""Identities as data: statement, hypotheses, source, theorem, verdict; checked, falsified, and kept with a shrunk counterexample."""
