"""Step runners: one for each kind of action, and one for each kind of function."""
