"""What chained tasks are made of: steps from one kind of value to another, as data."""
