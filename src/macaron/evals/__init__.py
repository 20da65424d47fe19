"""Evaluations: suites, judges and the statistics under every quality claim."""
