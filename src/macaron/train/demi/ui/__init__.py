"""Training rows of the interface specialist: briefs and the cards that answer them, made from templates and data."""
