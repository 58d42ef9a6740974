"""The HTTP API: from requests to calls of the services, and from results to answers."""
