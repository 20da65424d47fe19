"""Routing rows of the entry specialist, one module a source; `banks/` holds the phrases of our own generators."""
