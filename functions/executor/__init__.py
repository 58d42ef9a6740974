"""The function that advances runs."""
