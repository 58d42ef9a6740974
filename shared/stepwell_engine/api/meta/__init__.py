"""The routes about the API itself."""
