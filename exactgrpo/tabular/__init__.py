"""Finite Markov decision processes: the tabular benchmark of delayed rewards, exactly."""
