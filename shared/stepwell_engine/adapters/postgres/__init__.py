"""PostgreSQL: the embedded server, connections, and rows as JSON."""
