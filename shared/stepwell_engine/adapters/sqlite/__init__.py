"""The stores on one SQLite file."""
