"""The routes of queues, functions and the database, with their requests and answers."""
