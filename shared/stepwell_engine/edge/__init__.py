"""From HTTP requests and queue records to calls, and from results to answers."""
