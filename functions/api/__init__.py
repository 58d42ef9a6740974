"""The function that answers the API."""
