"""Data for training: rows, sources, recipes, and what was done to them."""
